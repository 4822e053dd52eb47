#include "runtime/optim/sgd.h"

#include <utility>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/elementwise.h"
#include "runtime/optim/gradient.h"
#include "runtime/optim/velocity_step.h"

namespace ringmaster::optim {
namespace {

class Sgd : public Optimizer {
 public:
  Sgd(const training::v1alpha1::Sgd& config, size_t size, std::vector<Segment> segments)
      : decay_(config.weight_decay),
        momentum_(static_cast<float>(config.momentum)),
        nesterov_(config.nesterov),
        caffe_(config.form == training::v1alpha1::SgdForm::kCaffe),
        segments_(std::move(segments)),
        velocity_(momentum_ > 0 ? size : 0) {}

  void Update(std::span<float> weights, std::span<const float> gradient_sums,
              const UpdateOptions& options) override {
    for (const Segment& segment : segments_) {
      const StepConstants c{
          static_cast<float>(options.learning_rate * segment.rate_factor),
          static_cast<float>(decay_ * options.weight_decay_factor * segment.decay_factor),
          momentum_};
      float* w = weights.data() + segment.begin;
      float* v = velocity_.empty() ? nullptr : velocity_.data() + segment.begin;
      ReadGradient(gradient_sums.data() + segment.begin, options, [&](const auto& g) {
        ForEachBlock(segment.size(),
                     [&](size_t begin, size_t end) { Step(c, w, g, v, begin, end); });
      });
    }
  }

  std::vector<StateBuffer> state() override {
    if (velocity_.empty()) return {};
    return {{caffe_ ? "velocity" : "momentum", velocity_}};
  }

 private:
  void Step(const StepConstants& c, float* w, auto g, float* v, size_t begin, size_t end) const {
    if (v == nullptr) {
      Plain(c, w, g, begin, end);
    } else if (caffe_ && nesterov_) {
      VelocityStep<true>(c, w, g, v, begin, end);
    } else if (caffe_) {
      VelocityStep<false>(c, w, g, v, begin, end);
    } else if (nesterov_) {
      WithMomentum<true>(c, w, g, v, begin, end);
    } else {
      WithMomentum<false>(c, w, g, v, begin, end);
    }
  }

  static void Plain(const StepConstants& c, float* w, auto g, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) w[i] -= c.rate * (g[i] + c.decay * w[i]);
  }

  template <bool kNesterov>
  static void WithMomentum(const StepConstants& c, float* w, auto g, float* v, size_t begin,
                           size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const float decayed = g[i] + c.decay * w[i];
      v[i] = c.momentum * v[i] + decayed;
      w[i] -= c.rate * (kNesterov ? decayed + c.momentum * v[i] : v[i]);
    }
  }

  const double decay_;
  const float momentum_;
  const bool nesterov_;
  const bool caffe_;
  const std::vector<Segment> segments_;
  std::vector<float> velocity_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeSgd(const training::v1alpha1::Sgd& config,
                                                   size_t size, std::vector<Segment> segments) {
  if (config.nesterov && config.momentum <= 0) {
    return absl::InvalidArgumentError("optimizer.sgd.nesterov: needs a momentum above 0");
  }
  return std::make_unique<Sgd>(config, size, std::move(segments));
}

}  // namespace ringmaster::optim
