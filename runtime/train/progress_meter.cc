#include "runtime/train/progress_meter.h"

namespace ringmaster::train {
namespace {

SteadyTime Now() {
  return std::chrono::steady_clock::now();
}

double Seconds(SteadyTime::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

ProgressMeter::ProgressMeter(const Workload& workload, TrainerMetrics& metrics, Duration period)
    : workload_(workload), metrics_(metrics), period_(period), last_taken_(Now()) {}

void ProgressMeter::StepBegins() {
  begun_ = Now();
}

void ProgressMeter::ShardsComputed(int64_t own_samples) {
  computed_ = Now();
  compute_seconds_ = Seconds(computed_ - begun_);
  metrics_.compute_seconds.Observe(compute_seconds_);
  metrics_.samples.Increment(static_cast<double>(own_samples));
}

void ProgressMeter::Reduced(const ReductionTraffic& traffic) {
  allreduce_seconds_ = Seconds(Now() - computed_);
  metrics_.allreduce_seconds.Observe(allreduce_seconds_);
  metrics_.sent_bytes.Increment(static_cast<double>(traffic.sent));
  metrics_.received_bytes.Increment(static_cast<double>(traffic.received));
  metrics_.saved_bytes.Increment(static_cast<double>(traffic.saved));
}

void ProgressMeter::Committed(const Replica& replica, bool skipped) {
  ++steps_since_;
  metrics_.step_seconds.Observe(Seconds(Now() - begun_));
  metrics_.steps.Increment();
  if (skipped) metrics_.skipped_steps.Increment();
  metrics_.loss.Set(replica.loss());
  metrics_.step.Set(static_cast<double>(replica.step()));
}

bool ProgressMeter::IsDue() const {
  return Now() - last_taken_ >= period_;
}

Progress ProgressMeter::Take(const Replica& replica) {
  const SteadyTime now = Now();
  if (steps_since_ > 0) {
    const auto samples = static_cast<double>(steps_since_ * workload_.batch());
    samples_per_second_ = samples / Seconds(now - last_taken_);
    metrics_.samples_per_second.Set(samples_per_second_);
  }
  last_taken_ = now;
  steps_since_ = 0;
  return {.step = static_cast<int64_t>(replica.step()),
          .total_steps = static_cast<int64_t>(workload_.total_steps()),
          .epoch = workload_.EpochsAfter(replica.step()),
          .loss = replica.loss(),
          .evaluation = replica.evaluation(),
          .samples_per_second = samples_per_second_,
          .step_seconds = compute_seconds_,
          .allreduce_seconds = allreduce_seconds_,
          .skipped_steps = static_cast<int64_t>(replica.skipped_steps())};
}

}  // namespace ringmaster::train
