#include "runtime/train/plot/curve.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/optim/optimizer.h"

namespace ringmaster::train::plot {
namespace {

template <typename Value>
Curve MakeCurve(std::string name, uint64_t steps, int columns, const Value& value) {
  constexpr uint64_t kLooks = 1000;
  Curve curve{.name = std::move(name)};
  curve.highest = curve.first = value(0);
  curve.last = value(steps - 1);
  const auto width = static_cast<uint64_t>(columns);
  // steps / width * c would lose the rest; steps * c might not fit.
  const auto begin_of = [&](uint64_t c) { return steps / width * c + steps % width * c / width; };
  for (uint64_t c = 0; c < width; ++c) {
    const uint64_t begin = std::min(begin_of(c), steps - 1);
    const uint64_t end = std::max(begin_of(c + 1), begin + 1);
    Column column{value(begin), value(begin)};
    for (uint64_t step = begin; step < end; step += std::max<uint64_t>(1, (end - begin) / kLooks)) {
      const double v = value(step);
      column = {std::min(column.low, v), std::max(column.high, v)};
      if (v > curve.highest) curve.highest = v, curve.highest_step = step;
    }
    curve.columns.push_back(column);
  }
  return curve;
}

}  // namespace

bool Curve::constant() const {
  return std::all_of(columns.begin(), columns.end(),
                     [&](const Column& c) { return c.low == first && c.high == first; });
}

StepRates::StepRates(const training::v1alpha1::TrainerConfig& config, const optim::RunLength& run)
    : run_(run),
      schedule_(config.schedule.value_or(training::v1alpha1::Schedule())),
      base_rate_(optim::BaseLearningRate(config.optimizer)),
      base_decay_(optim::BaseWeightDecay(config.optimizer)) {}

double StepRates::RateAt(uint64_t step) const {
  return optim::LearningRateAt(schedule_, base_rate_, step, run_);
}

double StepRates::DecayAt(uint64_t step) const {
  return base_decay_ * optim::WeightDecayFactor(schedule_, step, run_);
}

Curves MakeCurves(const training::v1alpha1::TrainerConfig& config, const optim::RunLength& run,
                  int columns) {
  const StepRates rates(config, run);
  return {.run = run,
          .rate = MakeCurve("learning rate", run.total_steps, columns,
                            [&](uint64_t step) { return rates.RateAt(step); }),
          .decay = MakeCurve("weight decay", run.total_steps, columns,
                             [&](uint64_t step) { return rates.DecayAt(step); })};
}

std::string Describe(const optim::RunLength& run) {
  return fmt::format("{} steps: {:.4g} epochs of {} samples in batches of {}", run.total_steps,
                     static_cast<double>(run.total_steps) * static_cast<double>(run.batch) /
                         static_cast<double>(run.samples),
                     run.samples, run.batch);
}

}  // namespace ringmaster::train::plot
