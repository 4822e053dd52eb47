#include "runtime/optim/lamb.h"

#include <array>
#include <cmath>
#include <utility>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/elementwise.h"
#include "runtime/optim/gradient.h"
#include "runtime/optim/moments.h"

namespace ringmaster::optim {
namespace {

class Lamb : public Optimizer {
 public:
  Lamb(const MomentOptions& options, size_t size, std::vector<Segment> segments)
      : moments_(options, size), segments_(std::move(segments)) {}

  void Update(std::span<float> weights, std::span<const float> gradient_sums,
              const UpdateOptions& options) override {
    for (const Segment& segment : segments_) {
      ReadGradient(gradient_sums.data() + segment.begin, options, [&](const auto& gradient) {
        TakeStep(segment, weights.data() + segment.begin, gradient, options);
      });
    }
  }

  std::vector<StateBuffer> state() override { return moments_.state(); }

 private:
  // Two passes over memory: the moments, with the norms of what they make, and the weights.
  void TakeStep(const Segment& segment, float* w, const auto& all, const UpdateOptions& options) {
    const MomentOptions& o = moments_.options;
    const auto beta1 = static_cast<float>(o.beta1), rest1 = static_cast<float>(1 - o.beta1);
    const auto beta2 = static_cast<float>(o.beta2), rest2 = static_cast<float>(1 - o.beta2);
    const auto first = static_cast<float>(1 / moments_.FirstCorrection(options.step));
    const auto second = static_cast<float>(moments_.SecondCorrection(options.step));
    const auto epsilon = static_cast<float>(o.epsilon);
    const auto decay =
        static_cast<float>(o.weight_decay * options.weight_decay_factor * segment.decay_factor);
    float* m = moments_.first.data() + segment.begin;
    float* v = moments_.second.data() + segment.begin;
    const auto r = [=](size_t i) {
      return first * m[i] / (std::sqrt(v[i]) * second + epsilon) + decay * w[i];
    };
    const auto [of_weights, of_step] = SumBlocks<2>(segment.size(), [&](size_t begin, size_t end) {
      const auto gradient = all;
      for (size_t i = begin; i < end; ++i) {
        const float g = gradient[i];
        m[i] = beta1 * m[i] + rest1 * g;
        v[i] = beta2 * v[i] + rest2 * g * g;
      }
      if (!segment.layer_wise) return std::array{0.0, 0.0};
      return std::array{SumOfSquaresIn(begin, end, [w](size_t i) { return w[i]; }),
                        SumOfSquaresIn(begin, end, r)};
    });
    double ratio = 1;
    if (of_weights > 0 && of_step > 0) ratio = std::sqrt(of_weights) / std::sqrt(of_step);
    const float rate = FiniteRate(options.learning_rate * segment.rate_factor * ratio);
    ForEachBlock(segment.size(), [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) w[i] -= rate * r(i);
    });
  }

  Moments moments_;
  const std::vector<Segment> segments_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeLamb(const training::v1alpha1::Lamb& config,
                                                    size_t size, std::vector<Segment> segments) {
  const MomentOptions options = MomentOptionsOf(config);
  RM_RETURN_IF_ERROR(CheckBetas(options, "lamb"));
  return std::make_unique<Lamb>(options, size, std::move(segments));
}

}  // namespace ringmaster::optim
