#include "runtime/optim/lars.h"

#include <cmath>
#include <utility>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/elementwise.h"
#include "runtime/optim/gradient.h"
#include "runtime/optim/velocity_step.h"

namespace ringmaster::optim {
namespace {

class Lars : public Optimizer {
 public:
  Lars(const training::v1alpha1::Lars& config, size_t size, std::vector<Segment> segments)
      : decay_(config.weight_decay),
        trust_(config.trust),
        momentum_(static_cast<float>(config.momentum)),
        segments_(std::move(segments)),
        velocity_(size) {}

  void Update(std::span<float> weights, std::span<const float> gradient_sums,
              const UpdateOptions& options) override {
    for (const Segment& segment : segments_) {
      ReadGradient(gradient_sums.data() + segment.begin, options, [&](const auto& gradient) {
        UpdateSegment(segment, weights.data() + segment.begin, gradient, options);
      });
    }
  }

  std::vector<StateBuffer> state() override { return {{"velocity", velocity_}}; }

 private:
  void UpdateSegment(const Segment& segment, float* w, const auto& g,
                     const UpdateOptions& options) {
    float* v = velocity_.data() + segment.begin;
    const double decay = decay_ * options.weight_decay_factor * segment.decay_factor;
    const double ratio = segment.layer_wise ? Ratio(w, g, segment.size(), decay) : 1;
    const StepConstants c{FiniteRate(options.learning_rate * segment.rate_factor * ratio),
                          static_cast<float>(decay), momentum_};
    ForEachBlock(segment.size(),
                 [&](size_t begin, size_t end) { VelocityStep<false>(c, w, g, v, begin, end); });
  }

  double Ratio(const float* w, const auto& g, size_t size, double decay) const {
    const double weights = std::sqrt(SumOfSquares(size, [w](size_t i) { return w[i]; }));
    const double gradient = g.Norm(size);
    if (weights == 0 || gradient == 0) return 1;
    return trust_ * weights / (gradient + decay * weights);
  }

  const double decay_, trust_;
  const float momentum_;
  const std::vector<Segment> segments_;
  std::vector<float> velocity_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeLars(const training::v1alpha1::Lars& config, size_t size,
                                    std::vector<Segment> segments) {
  return std::make_unique<Lars>(config, size, std::move(segments));
}

}  // namespace ringmaster::optim
