#include "runtime/optim/sgd.h"

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/elementwise.h"

namespace ringmaster::optim {
namespace {

// The formula's constants in the precision that it is computed in.
struct Constants {
  float rate, scale, decay, momentum;
};

class Sgd : public Optimizer {
 public:
  Sgd(const training::v1alpha1::Sgd& config, size_t size)
      : decay_(static_cast<float>(config.weight_decay)),
        momentum_(static_cast<float>(config.momentum)),
        nesterov_(config.nesterov),
        velocity_(momentum_ > 0 ? size : 0) {}

  void Update(std::span<float> weights, std::span<const float> gradient_sums,
              const UpdateOptions& options) override {
    const Constants c{static_cast<float>(options.learning_rate),
                      static_cast<float>(options.gradient_scale), decay_, momentum_};
    float* w = weights.data();
    const float* g = gradient_sums.data();
    ForEachBlock(weights.size(), [&](size_t begin, size_t end) {
      if (velocity_.empty()) {
        Plain(c, w, g, begin, end);
      } else if (nesterov_) {
        WithMomentum<true>(c, w, g, velocity_.data(), begin, end);
      } else {
        WithMomentum<false>(c, w, g, velocity_.data(), begin, end);
      }
    });
  }

  std::vector<StateBuffer> state() override {
    if (velocity_.empty()) return {};
    return {{"momentum", velocity_}};
  }

 private:
  static void Plain(const Constants& c, float* w, const float* sums, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) w[i] -= c.rate * (c.scale * sums[i] + c.decay * w[i]);
  }

  template <bool kNesterov>
  static void WithMomentum(const Constants& c, float* w, const float* sums, float* v, size_t begin,
                           size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float g = c.scale * sums[i] + c.decay * w[i];
      v[i] = c.momentum * v[i] + g;
      w[i] -= c.rate * (kNesterov ? g + c.momentum * v[i] : v[i]);
    }
  }

  const float decay_;
  const float momentum_;
  const bool nesterov_;
  std::vector<float> velocity_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeSgd(const training::v1alpha1::Sgd& config,
                                                   size_t size) {
  if (config.nesterov && config.momentum <= 0) {
    return absl::InvalidArgumentError("optimizer.sgd.nesterov: needs a momentum above 0");
  }
  return std::make_unique<Sgd>(config, size);
}

}  // namespace ringmaster::optim
