#include "runtime/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/power.h"

namespace ringmaster::optim {
namespace {

using namespace training::v1alpha1;  // NOLINT: every other name here is one of the API's

// Epochs, a fraction, that lie before `step`.
double EpochOf(uint64_t step, const RunLength& run) {
  return static_cast<double>(step) * static_cast<double>(run.batch) /
         static_cast<double>(run.samples);
}

// The first step that begins at or after so many epochs.
uint64_t StepsOf(double epochs, const RunLength& run) {
  constexpr double kMost = 9e18;
  const double steps =
      std::ceil(epochs * static_cast<double>(run.samples) / static_cast<double>(run.batch));
  return static_cast<uint64_t>(std::clamp(steps, 0.0, kMost));
}

// Exact, and the same on every processor, for whole exponents: what recipes have.
double PowerOf(double base, double exponent) {
  if (exponent != std::floor(exponent)) return std::pow(base, exponent);
  return Power(base, static_cast<uint64_t>(exponent));
}

// Falls from 1 to `low` as `progress` goes from 0 to 1.
double PolynomialFall(double progress, double power, double low) {
  return low + (1 - low) * PowerOf(1 - std::clamp(progress, 0.0, 1.0), power);
}

double StepDecayFactor(const StepDecay& decay, uint64_t step, const RunLength& run) {
  const double consumed =
      static_cast<double>(step) * (decay.in_steps ? 1 : static_cast<double>(run.batch));
  const double unit = decay.in_steps ? 1 : static_cast<double>(run.samples);
  double factor = 1;
  for (const double milestone : decay.milestones) {
    if (consumed >= milestone * unit) factor *= decay.gamma;
  }
  return factor;
}

double PeriodicFactor(const PeriodicDecay& decay, uint64_t step, const RunLength& run) {
  if (decay.steps) return Power(decay.gamma, step / static_cast<uint64_t>(*decay.steps));
  // One division, so that a period of 0.1 epochs ends where it should.
  const double periods = static_cast<double>(step) * static_cast<double>(run.batch) /
                         (decay.epochs.value_or(1) * static_cast<double>(run.samples));
  return Power(decay.gamma, static_cast<uint64_t>(std::min(periods, 1e18)));
}

double CosineFactor(double final_fraction, uint64_t step, uint64_t warmup, uint64_t total) {
  if (step <= warmup) return 1;
  const uint64_t last = std::max(total, warmup + 2) - 1;
  const double progress =
      std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(last - warmup));
  return final_fraction + (1 - final_fraction) * (1 + std::cos(std::numbers::pi * progress)) / 2;
}

double PolynomialFactor(const Polynomial& polynomial, uint64_t step, uint64_t warmup,
                        uint64_t total) {
  const uint64_t begin = polynomial.after_warmup ? warmup : 0;
  const uint64_t end = polynomial.steps ? static_cast<uint64_t>(*polynomial.steps) : total;
  double progress = 0;
  if (step >= begin && end <= begin) progress = 1;
  if (step > begin && end > begin)
    progress = static_cast<double>(step - begin) / static_cast<double>(end - begin);
  return PolynomialFall(progress, polynomial.power, polynomial.final_fraction);
}

double CyclicFactor(const Cyclic& cyclic, uint64_t step, const RunLength& run) {
  const double x = std::fmod(EpochOf(step, run), cyclic.epochs), rise = cyclic.rise_epochs;
  if (x < rise) return cyclic.low_fraction + (1 - cyclic.low_fraction) * x / rise;
  return PolynomialFall((x - rise) / (cyclic.epochs - rise), cyclic.power, cyclic.low_fraction);
}

// Steps of a `warmup`; of `warmupSteps` where there is none.
uint64_t WarmupSteps(const Schedule& schedule, const RunLength& run) {
  if (!schedule.warmup) return static_cast<uint64_t>(std::max<int64_t>(schedule.warmup_steps, 0));
  const Warmup& warmup = *schedule.warmup;
  if (warmup.stepping) return StepsOf(warmup.stepping->epochs, run);
  if (warmup.gradual) return StepsOf(warmup.gradual->epochs, run);
  return warmup.linear ? static_cast<uint64_t>(std::max<int64_t>(warmup.linear->steps, 0)) : 0;
}

// The rate of a step inside the warm-up.
double WarmupRate(const Warmup& warmup, double target, uint64_t step, const RunLength& run) {
  const double epoch = std::floor(EpochOf(step, run));
  if (warmup.stepping) return target * ((epoch + 1) / (warmup.stepping->epochs + 1));
  if (warmup.gradual) {
    const GradualWarmup& gradual = *warmup.gradual;
    const double start = gradual.start_rate.value_or(target * gradual.start_batch.value_or(1) /
                                                     static_cast<double>(run.batch));
    return start + (target - start) / gradual.epochs * epoch;
  }
  const LinearWarmup& linear = *warmup.linear;
  const double share = static_cast<double>(step) / static_cast<double>(linear.steps);
  return linear.start_rate + (target - linear.start_rate) * share;
}

// What the target is multiplied by after a `warmup`, and everywhere without one.
double Factor(const Schedule& schedule, uint64_t step, uint64_t warmup, const RunLength& run) {
  double factor = 1;
  if (step < warmup) factor = static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  if (schedule.step_decay) factor *= StepDecayFactor(*schedule.step_decay, step, run);
  if (schedule.periodic_decay) factor *= PeriodicFactor(*schedule.periodic_decay, step, run);
  if (schedule.cosine) {
    factor *= CosineFactor(schedule.cosine->final_fraction, step, warmup, run.total_steps);
  }
  if (schedule.polynomial) {
    factor *= PolynomialFactor(*schedule.polynomial, step, warmup, run.total_steps);
  }
  if (schedule.cyclic) factor *= CyclicFactor(*schedule.cyclic, step, run);
  return factor;
}

double RateBeforeCollapse(const Schedule& schedule, double base, uint64_t step,
                          const RunLength& run) {
  const double target = schedule.linear_scaling_batch
                            ? base * static_cast<double>(run.batch) / *schedule.linear_scaling_batch
                            : base;
  const uint64_t warmup = WarmupSteps(schedule, run);
  if (schedule.warmup && step < warmup) return WarmupRate(*schedule.warmup, target, step, run);
  return target * Factor(schedule, step, warmup, run);
}

double OnTheLines(const std::vector<WeightDecayPoint>& points, double epoch) {
  const auto right =
      std::find_if(points.begin(), points.end(), [&](const auto& p) { return epoch < p.epoch; });
  if (right == points.end()) return points.back().factor;
  if (right == points.begin()) return right->factor;
  const auto left = right - 1;
  const double share = (epoch - left->epoch) / (right->epoch - left->epoch);
  return left->factor + (right->factor - left->factor) * share;
}

}  // namespace

uint64_t CollapseBegin(const Schedule& schedule, const RunLength& run) {
  if (!schedule.collapse) return run.total_steps;
  const Collapse& collapse = *schedule.collapse;
  const uint64_t steps = collapse.steps ? static_cast<uint64_t>(*collapse.steps)
                                        : StepsOf(collapse.epochs.value_or(0), run);
  return run.total_steps - std::min(steps, run.total_steps);
}

double LearningRateAt(const Schedule& schedule, double base, uint64_t step, const RunLength& run) {
  const uint64_t begin = CollapseBegin(schedule, run);
  if (step < begin || !schedule.collapse) return RateBeforeCollapse(schedule, base, step, run);
  const double progress = static_cast<double>(step - begin) /
                          static_cast<double>(std::max(run.total_steps, begin + 1) - begin);
  return RateBeforeCollapse(schedule, base, begin, run) *
         PolynomialFall(progress, schedule.collapse->power, 0);
}

double WeightDecayFactor(const Schedule& schedule, uint64_t step, const RunLength& run) {
  double factor = 1;
  if (!schedule.weight_decay.empty())
    factor = OnTheLines(schedule.weight_decay, EpochOf(step, run));
  if (schedule.collapse && step >= CollapseBegin(schedule, run))
    factor *= schedule.collapse->weight_decay_factor;
  return factor;
}

}  // namespace ringmaster::optim
