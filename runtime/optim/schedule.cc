#include "runtime/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"

namespace ringmaster::optim {
namespace {

double StepDecayFactor(const training::v1alpha1::StepDecay& decay, uint64_t step,
                       const RunLength& run) {
  const double consumed = static_cast<double>(step) * static_cast<double>(run.batch);
  double factor = 1;
  for (const double milestone : decay.milestones) {
    if (consumed >= milestone * static_cast<double>(run.samples)) factor *= decay.gamma;
  }
  return factor;
}

double CosineFactor(double final_fraction, uint64_t step, uint64_t warmup, uint64_t total) {
  if (step <= warmup) return 1;
  const uint64_t last = std::max(total, warmup + 2) - 1;
  const double progress =
      std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(last - warmup));
  return final_fraction + (1 - final_fraction) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

}  // namespace

double LearningRateFactor(const training::v1alpha1::Schedule& schedule, uint64_t step,
                          const RunLength& run) {
  const auto warmup = static_cast<uint64_t>(std::max<int64_t>(schedule.warmup_steps, 0));
  double factor = 1;
  if (step < warmup) factor = static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  if (schedule.step_decay) factor *= StepDecayFactor(*schedule.step_decay, step, run);
  if (schedule.cosine) {
    factor *= CosineFactor(schedule.cosine->final_fraction, step, warmup, run.total_steps);
  }
  return factor;
}

}  // namespace ringmaster::optim
