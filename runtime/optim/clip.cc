#include "runtime/optim/clip.h"

#include <cmath>
#include <utility>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/elementwise.h"
#include "runtime/optim/gradient.h"

namespace ringmaster::optim {
namespace {

class ByNorm : public Optimizer {
 public:
  ByNorm(double bound, std::unique_ptr<Optimizer> optimizer)
      : bound_(bound), optimizer_(std::move(optimizer)) {}

  void Update(std::span<float> weights, std::span<const float> gradient_sums,
              const UpdateOptions& options) override {
    const double squares =
        options.sum_of_squares ? *options.sum_of_squares : SumOfSquares(gradient_sums);
    const double norm = options.gradient_scale * std::sqrt(squares);
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
  ByValue(double bound, std::unique_ptr<Optimizer> optimizer)
      : bound_(bound), optimizer_(std::move(optimizer)) {}

  void Update(std::span<float> weights, std::span<const float> gradient_sums,
              const UpdateOptions& options) override {
    UpdateOptions bounded = options;
    bounded.gradient_bound = bound_;
    optimizer_->Update(weights, gradient_sums, bounded);
  }

  std::vector<StateBuffer> state() override { return optimizer_->state(); }

 private:
  const double bound_;
  const std::unique_ptr<Optimizer> optimizer_;
};

// For an optimizer that knows of no bound.
class ByValueBefore : public Optimizer {
 public:
  ByValueBefore(double bound, size_t size, std::unique_ptr<Optimizer> optimizer)
      : bound_(bound), optimizer_(std::move(optimizer)), clipped_(size) {}

  void Update(std::span<float> weights, std::span<const float> gradient_sums,
              const UpdateOptions& options) override {
    UpdateOptions bounded = options;
    bounded.gradient_bound = bound_;
    const Gradient<true> g(gradient_sums.data(), bounded);
    ForEachBlock(clipped_.size(), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) clipped_[i] = g[i];
    });
    UpdateOptions unscaled = options;
    unscaled.gradient_scale = 1;
    optimizer_->Update(weights, clipped_, unscaled);
  }

  std::vector<StateBuffer> state() override { return optimizer_->state(); }

 private:
  const double bound_;
  const std::unique_ptr<Optimizer> optimizer_;
  std::vector<float> clipped_;
};

}  // namespace

double SumOfSquares(std::span<const float> gradient_sums) {
  const float* sums = gradient_sums.data();
  return SumOfSquares(gradient_sums.size(), [sums](size_t i) { return sums[i]; });
}

std::unique_ptr<Optimizer> Clipped(const training::v1alpha1::Clip& config, size_t size, bool custom,
                                   std::unique_ptr<Optimizer> optimizer) {
  if (config.global_norm)
    return std::make_unique<ByNorm>(*config.global_norm, std::move(optimizer));
  if (!config.value) return optimizer;
  if (custom) return std::make_unique<ByValueBefore>(*config.value, size, std::move(optimizer));
  return std::make_unique<ByValue>(*config.value, std::move(optimizer));
}

}  // namespace ringmaster::optim
