#include "runtime/train/trainer_metrics.h"

#include <optional>
#include <string>
#include <vector>

namespace ringmaster::train {
namespace {

constexpr char kPrefix[] = "ringmaster_trainer_";

std::string Name(const char* what) {
  return std::string(kPrefix) + what;
}

// A tenth of a millisecond to about ten minutes.
const std::vector<double>& Seconds() {
  static const auto* buckets = new std::vector<double>(metrics::ExponentialBuckets(1e-4, 2, 23));
  return *buckets;
}

metrics::Counter& Bytes(metrics::Registry& registry, const char* direction) {
  return registry.AddCounter(Name("allreduce_bytes_total"),
                             "Bytes of gradients that this worker exchanged with its peers.",
                             {{"direction", direction}});
}

metrics::Counter& Checkpoints(metrics::Registry& registry, const char* result) {
  return registry.AddCounter(Name("checkpoints_total"),
                             "This worker's checkpoint files, by what became of them.",
                             {{"result", result}});
}

}  // namespace

TrainerMetrics::TrainerMetrics(metrics::Registry& made_in)
    : registry(made_in),
      step_seconds(registry.AddHistogram(Name("step_seconds"),
                                         "Time of a step, waiting for peers included.", Seconds())),
      compute_seconds(registry.AddHistogram(
          Name("compute_seconds"), "Time of a step's forward and backward passes on this worker.",
          Seconds())),
      allreduce_seconds(registry.AddHistogram(
          Name("allreduce_seconds"),
          "Time that a step waits for its gradients' reduction after its last shard.", Seconds())),
      checkpoint_seconds(registry.AddHistogram(Name("checkpoint_seconds"),
                                               "Time to write this worker's part of a checkpoint.",
                                               Seconds())),
      steps(registry.AddCounter(Name("steps_total"), "Steps committed, repeated ones included.")),
      skipped_steps(registry.AddCounter(Name("skipped_steps_total"),
                                        "Steps left out because the loss was not finite.")),
      samples(registry.AddCounter(Name("samples_total"),
                                  "Samples that this worker computed, repeated ones included.")),
      sent_bytes(Bytes(registry, "sent")),
      received_bytes(Bytes(registry, "received")),
      saved_bytes(registry.AddCounter(Name("allreduce_saved_bytes_total"),
                                      "Bytes of gradients that compression did not send, against a "
                                      "ring of 32-bit floats.")),
      checkpoints_written(Checkpoints(registry, "written")),
      checkpoints_failed(Checkpoints(registry, "failed")),
      checkpoints_rejected(Checkpoints(registry, "rejected")),
      rounds(registry.AddCounter(Name("rounds_total"), "Rounds that this worker took part in.")),
      rounds_lost(registry.AddCounter(
          Name("rounds_lost_total"),
          "Rounds that were broken off: a peer was lost, or the operator began another.")),
      samples_per_second(registry.AddGauge(Name("samples_per_second"),
                                           "Samples per second of the whole job, lately.")),
      loss(registry.AddGauge(Name("loss"), "Mean loss of the last step.")),
      accuracy(registry.AddGauge(Name("accuracy"),
                                 "Share of held-out samples that the last evaluation got right.")),
      step(registry.AddGauge(Name("step"), "The last committed step.")),
      sharing_peers(registry.AddGauge(Name("sharing_peers"),
                                      "Peers with which this worker's data goes through shared "
                                      "memory in this round.")) {
  for (size_t i = 0; i < operations_.size(); ++i) {
    const char* kind = collectives::OperationKindName(static_cast<collectives::OperationKind>(i));
    const auto bytes = [&](const char* direction) {
      return &registry.AddCounter(
          Name("collective_bytes_total"),
          "Bytes that this worker exchanged with its peers in operations of all kinds.",
          {{"operation", kind}, {"direction", direction}});
    };
    metrics::Counter& calls =
        registry.AddCounter(Name("collective_calls_total"),
                            "Operations with its peers that this worker took part in, failed ones "
                            "included.",
                            {{"operation", kind}});
    operations_[i] = {&calls, bytes("sent"), bytes("received")};
  }
}

void TrainerMetrics::Exchanged(const collectives::CommunicatorStats& now,
                               collectives::CommunicatorStats& counted) {
  for (size_t i = 0; i < operations_.size(); ++i) {
    const collectives::OperationStats &after = now.by_kind[i], &before = counted.by_kind[i];
    const Operation& operation = operations_[i];
    const auto add = [](metrics::Counter& counter, uint64_t all, uint64_t already) {
      if (all != already) counter.Increment(static_cast<double>(all - already));
    };
    add(*operation.calls, after.calls, before.calls);
    add(*operation.sent, after.bytes_sent, before.bytes_sent);
    add(*operation.received, after.bytes_received, before.bytes_received);
  }
  sharing_peers.Set(static_cast<double>(now.sharing_peers));
  counted = now;
}

void TrainerMetrics::Evaluated(const Evaluation& evaluation, std::span<const std::string> labels) {
  accuracy.Set(evaluation.accuracy);
  const auto set = [&](const char* what, const char* help, std::optional<double> value) {
    if (value) registry.AddGauge(Name(what), help).Set(*value);
  };
  set("evaluation_loss", "Mean loss of the held-out samples in the last evaluation.",
      evaluation.loss);
  set("top5_accuracy",
      "Share of held-out samples whose class was among the five with the highest scores in the "
      "last evaluation.",
      evaluation.top5_accuracy);
  set("perplexity", "Perplexity of the held-out text in the last evaluation.",
      evaluation.perplexity);
  set("auroc",
      "Area under the receiver operating characteristic of the held-out samples in the last "
      "evaluation.",
      evaluation.auroc);
  for (size_t i = 0; i < evaluation.label_aurocs.size(); ++i) {
    if (!evaluation.label_aurocs[i]) continue;
    registry
        .AddGauge(Name("label_auroc"),
                  "Area under the receiver operating characteristic of a label in the last "
                  "evaluation.",
                  {{"label", labels[i]}})
        .Set(*evaluation.label_aurocs[i]);
  }
}

}  // namespace ringmaster::train
