// The trainer's series. All names begin with ringmaster_trainer_. Thread-safe.
#ifndef RINGMASTER_RUNTIME_TRAIN_TRAINER_METRICS_H_
#define RINGMASTER_RUNTIME_TRAIN_TRAINER_METRICS_H_

#include <array>
#include <span>
#include <string>

#include "common/metrics.h"
#include "runtime/collectives/stats.h"
#include "runtime/train/evaluation.h"

namespace ringmaster::train {

struct TrainerMetrics {
  explicit TrainerMetrics(metrics::Registry& registry);

  // Sets the gauges of an evaluation. What the data does not have gets no series.
  // `labels` are the names of independent labels.
  void Evaluated(const Evaluation& evaluation, std::span<const std::string> labels);

  // Counts what a communicator has done since `counted`, which becomes what it has done until now.
  void Exchanged(const collectives::CommunicatorStats& now,
                 collectives::CommunicatorStats& counted);

  metrics::Registry& registry;

  metrics::Histogram& step_seconds;        // whole steps, waiting for peers included
  metrics::Histogram& compute_seconds;     // this rank's forward and backward
  metrics::Histogram& allreduce_seconds;   // from the rank's last gradient to the sum
  metrics::Histogram& checkpoint_seconds;  // writing this rank's file
  metrics::Counter& steps;
  metrics::Counter& skipped_steps;
  metrics::Counter& samples;
  metrics::Counter& sent_bytes;
  metrics::Counter& received_bytes;
  metrics::Counter& saved_bytes;  // ReductionTraffic::saved
  metrics::Counter& checkpoints_written;
  metrics::Counter& checkpoints_failed;
  metrics::Counter& checkpoints_rejected;
  metrics::Counter& rounds;
  metrics::Counter& rounds_lost;
  metrics::Gauge& samples_per_second;
  metrics::Gauge& loss;
  metrics::Gauge& accuracy;
  metrics::Gauge& step;
  metrics::Gauge& sharing_peers;  // CommunicatorStats::sharing_peers

 private:
  struct Operation {
    metrics::Counter *calls, *sent, *received;
  };
  std::array<Operation, collectives::kOperationKinds> operations_;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_TRAINER_METRICS_H_
