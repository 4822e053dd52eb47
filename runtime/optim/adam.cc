#include "runtime/optim/adam.h"

#include <cmath>
#include <utility>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/elementwise.h"
#include "runtime/optim/gradient.h"
#include "runtime/optim/moments.h"

namespace ringmaster::optim {
namespace {

template <bool kDecoupled>
class Adam : public Optimizer {
 public:
  Adam(const MomentOptions& options, size_t size, std::vector<Segment> segments)
      : moments_(options, size), segments_(std::move(segments)) {}

  void Update(std::span<float> weights, std::span<const float> gradient_sums,
              const UpdateOptions& options) override {
    for (const Segment& segment : segments_) {
      ReadGradient(gradient_sums.data() + segment.begin, options, [&](const auto& gradient) {
        UpdateSegment(segment, weights.data() + segment.begin, gradient, options);
      });
    }
  }

  std::vector<StateBuffer> state() override { return moments_.state(); }

 private:
  void UpdateSegment(const Segment& segment, float* w, const auto& all,
                     const UpdateOptions& options) {
    const MomentOptions& o = moments_.options;
    const double learning_rate = options.learning_rate * segment.rate_factor;
    const auto rate = static_cast<float>(learning_rate / moments_.FirstCorrection(options.step));
    const auto correction = static_cast<float>(moments_.SecondCorrection(options.step));
    const double decay = o.weight_decay * options.weight_decay_factor * segment.decay_factor;
    const auto coupled = static_cast<float>(decay);
    const auto kept = static_cast<float>(1 - learning_rate * decay);
    const auto beta1 = static_cast<float>(o.beta1), rest1 = static_cast<float>(1 - o.beta1);
    const auto beta2 = static_cast<float>(o.beta2), rest2 = static_cast<float>(1 - o.beta2);
    const auto epsilon = static_cast<float>(o.epsilon);
    float* m = moments_.first.data() + segment.begin;
    float* v = moments_.second.data() + segment.begin;
    ForEachBlock(segment.size(), [&](size_t begin, size_t end) {
      const auto gradient = all;
      for (size_t i = begin; i < end; ++i) {
        const float g = kDecoupled ? gradient[i] : gradient[i] + coupled * w[i];
        m[i] = beta1 * m[i] + rest1 * g;
        v[i] = beta2 * v[i] + rest2 * g * g;
        if (kDecoupled) w[i] *= kept;
        w[i] -= rate * (m[i] / (std::sqrt(v[i]) * correction + epsilon));
      }
    });
  }

  Moments moments_;
  const std::vector<Segment> segments_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdam(const training::v1alpha1::Adam& config,
                                                    size_t size, std::vector<Segment> segments) {
  const MomentOptions options = MomentOptionsOf(config);
  RM_RETURN_IF_ERROR(CheckBetas(options, "adam"));
  return std::make_unique<Adam<false>>(options, size, std::move(segments));
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeAdamW(const training::v1alpha1::AdamW& config,
                                                     size_t size, std::vector<Segment> segments) {
  const MomentOptions options = MomentOptionsOf(config);
  RM_RETURN_IF_ERROR(CheckBetas(options, "adamW"));
  return std::make_unique<Adam<true>>(options, size, std::move(segments));
}

}  // namespace ringmaster::optim
