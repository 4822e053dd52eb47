// Measures steps: into the metrics always, into progress events now and then.
#ifndef RINGMASTER_RUNTIME_TRAIN_PROGRESS_METER_H_
#define RINGMASTER_RUNTIME_TRAIN_PROGRESS_METER_H_

#include <cstdint>

#include "common/clock.h"
#include "runtime/train/gradient_sum.h"
#include "runtime/train/messages.h"
#include "runtime/train/replica.h"
#include "runtime/train/trainer_metrics.h"
#include "runtime/train/workload.h"

namespace ringmaster::train {

// One round's meter. Not thread-safe.
class ProgressMeter {
 public:
  ProgressMeter(const Workload& workload, TrainerMetrics& metrics, Duration period);

  // In this order, each step.
  void StepBegins();
  void ShardsComputed(int64_t own_samples);
  void Reduced(const ReductionTraffic& traffic);
  void Committed(const Replica& replica, bool skipped);

  // Whether it is time for the next progress event.
  bool IsDue() const;
  // What to say now. Starts the next period.
  Progress Take(const Replica& replica);

 private:
  const Workload& workload_;
  TrainerMetrics& metrics_;
  const Duration period_;
  SteadyTime begun_{};
  SteadyTime computed_{};
  SteadyTime last_taken_{};
  int64_t steps_since_ = 0;
  double compute_seconds_ = 0;
  double allreduce_seconds_ = 0;
  double samples_per_second_ = 0;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_PROGRESS_METER_H_
