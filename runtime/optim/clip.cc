#include "runtime/optim/clip.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/elementwise.h"

namespace ringmaster::optim {
namespace {

class ByNorm : public Optimizer {
 public:
  ByNorm(double bound, std::unique_ptr<Optimizer> optimizer)
      : bound_(bound), optimizer_(std::move(optimizer)) {}

  void Update(std::span<float> weights, std::span<const float> gradient_sums,
              const UpdateOptions& options) override {
    const float* sums = gradient_sums.data();
    const double norm =
        options.gradient_scale *
        std::sqrt(SumOfSquares(gradient_sums.size(), [sums](size_t i) { return sums[i]; }));
    UpdateOptions clipped = options;
    if (norm > bound_) clipped.gradient_scale *= bound_ / norm;
    optimizer_->Update(weights, gradient_sums, clipped);
  }

  std::vector<StateBuffer> state() override { return optimizer_->state(); }

 private:
  const double bound_;
  const std::unique_ptr<Optimizer> optimizer_;
};

class ByValue : public Optimizer {
 public:
  ByValue(double bound, size_t size, std::unique_ptr<Optimizer> optimizer)
      : bound_(static_cast<float>(bound)), optimizer_(std::move(optimizer)), clipped_(size) {}

  void Update(std::span<float> weights, std::span<const float> gradient_sums,
              const UpdateOptions& options) override {
    const auto scale = static_cast<float>(options.gradient_scale);
    const float* sums = gradient_sums.data();
    ForEachBlock(clipped_.size(), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i)
        clipped_[i] = std::clamp(scale * sums[i], -bound_, bound_);
    });
    UpdateOptions unscaled = options;
    unscaled.gradient_scale = 1;
    optimizer_->Update(weights, clipped_, unscaled);
  }

  std::vector<StateBuffer> state() override { return optimizer_->state(); }

 private:
  const float bound_;
  const std::unique_ptr<Optimizer> optimizer_;
  std::vector<float> clipped_;
};

}  // namespace

std::unique_ptr<Optimizer> Clipped(const training::v1alpha1::Clip& config, size_t size,
                                   std::unique_ptr<Optimizer> optimizer) {
  if (config.global_norm)
    return std::make_unique<ByNorm>(*config.global_norm, std::move(optimizer));
  if (config.value) return std::make_unique<ByValue>(*config.value, size, std::move(optimizer));
  return optimizer;
}

}  // namespace ringmaster::optim
