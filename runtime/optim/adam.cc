#include "runtime/optim/adam.h"

#include <cmath>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/elementwise.h"

namespace ringmaster::optim {
namespace {

// By squaring: the C library's pow may differ in the last bit from one processor to another.
double Power(double base, uint64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base) {
    if (exponent & 1) result *= base;
  }
  return result;
}

class Adam : public Optimizer {
 public:
  Adam(const training::v1alpha1::Adam& config, size_t size)
      : beta1_(config.beta1),
        beta2_(config.beta2),
        epsilon_(static_cast<float>(config.epsilon)),
        decay_(static_cast<float>(config.weight_decay)),
        first_(size),
        second_(size) {}

  void Update(std::span<float> weights, std::span<const float> gradient_sums,
              const UpdateOptions& options) override {
    const uint64_t t = options.step + 1;
    const auto rate = static_cast<float>(options.learning_rate / (1 - Power(beta1_, t)));
    const auto correction = static_cast<float>(1 / std::sqrt(1 - Power(beta2_, t)));
    const auto scale = static_cast<float>(options.gradient_scale);
    const auto beta1 = static_cast<float>(beta1_), rest1 = static_cast<float>(1 - beta1_);
    const auto beta2 = static_cast<float>(beta2_), rest2 = static_cast<float>(1 - beta2_);
    float *w = weights.data(), *m = first_.data(), *v = second_.data();
    const float* sums = gradient_sums.data();
    ForEachBlock(weights.size(), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const float g = scale * sums[i] + decay_ * w[i];
        m[i] = beta1 * m[i] + rest1 * g;
        v[i] = beta2 * v[i] + rest2 * g * g;
        w[i] -= rate * (m[i] / (std::sqrt(v[i]) * correction + epsilon_));
      }
    });
  }

  std::vector<StateBuffer> state() override {
    return {{"first_moment", first_}, {"second_moment", second_}};
  }

 private:
  const double beta1_, beta2_;
  const float epsilon_, decay_;
  std::vector<float> first_, second_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdam(const training::v1alpha1::Adam& config,
                                                    size_t size) {
  // With a beta of 1 a moment never leaves zero, and its correction divides by zero.
  if (config.beta1 >= 1 || config.beta2 >= 1) {
    return absl::InvalidArgumentError("optimizer.adam: beta1 and beta2 are below 1");
  }
  return std::make_unique<Adam>(config, size);
}

}  // namespace ringmaster::optim
