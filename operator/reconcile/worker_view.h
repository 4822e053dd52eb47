// What the rendezvous knows of a job's workers at one moment: an input of reconcile.
//
// The rendezvous service (operator/rendezvous) fills it from the workers' streams and hands out
// copies; reconcile only reads it. It is memory, not truth: after a restart of the operator it
// begins empty and the workers fill it again by dialling in, so a worker that is not in it is not
// lost until WorkersView::since is long enough ago.
//
// Plain values, no protobuf: the service translates. Thread safety: none, a copy belongs to one
// thread.
#ifndef RINGMASTER_OPERATOR_RECONCILE_WORKER_VIEW_H_
#define RINGMASTER_OPERATOR_RECONCILE_WORKER_VIEW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"

namespace ringmaster::reconcile {

// The trainer listens and waits for a round (rendezvous.proto, Ready). A foreign program's launcher
// is ready when it has said Hello, which has its address.
struct ReadyReport {
  std::string address;  // host:port, numeric
  std::string kernels_digest;
  std::string model;  // for people: "lenet-bn, 61,514 parameters"
  std::int64_t parameters = 0;
  std::int64_t total_steps = 0;
};

// What an evaluation measured (rendezvous.proto, Evaluation); what the data does not have is
// absent.
struct EvaluationReport {
  std::int64_t step = 0;
  double loss = 0;
  double accuracy = 0;
  std::optional<double> top5_accuracy;
  std::optional<double> perplexity;
  std::optional<double> auroc;
};

// The latest Progress of a worker, and when it was heard.
struct ProgressReport {
  std::int64_t round = 0;
  std::int64_t step = 0;
  std::int64_t total_steps = 0;
  double epoch = 0;
  double loss = 0;
  std::optional<double> accuracy;  // absent before the first evaluation
  double samples_per_second = 0;
  double step_seconds = 0;
  double allreduce_seconds = 0;
  std::int64_t skipped_steps = 0;              // of the steps, for a loss that is not finite
  std::optional<EvaluationReport> evaluation;  // the last one
  Time time;
};

// This worker's shard of a checkpoint is on disk. The service keeps a report until the worker's
// round changes or the checkpoint of that step was announced as committed; at least the last 16.
struct ShardReport {
  std::int64_t round = 0;
  std::int64_t step = 0;
  std::string digest;  // sha256 of the shard file, hexadecimal
  // Of spec.trainer.evaluation.metric, where this step was evaluated.
  std::optional<double> metric_value;
};

// A checkpoint that could not be written (failed) or loaded (rejected).
struct CheckpointTrouble {
  std::int64_t round = 0;
  std::int64_t step = 0;
  std::string message;
  Time time;
};

struct LabelReport {
  std::string name;
  std::optional<double> auroc;
};

struct FinishedReport {
  std::int64_t round = 0;
  std::string weights_sha256;
  std::int64_t steps = 0;
  double accuracy = 0;
  double loss = 0;
  std::optional<EvaluationReport> evaluation;  // of the last step
  std::string stopped_early;                   // why; empty where it went to its last step
  std::vector<LabelReport> labels;             // of data with several labels a sample
  std::int64_t skipped_steps = 0;              // of the steps, for a loss that is not finite
};

// The launcher says that its program ended. It comes before the pod's own status does.
struct ExitReport {
  int exit_code = 0;
  std::string message;         // its last log lines
  bool out_of_memory = false;  // killed at its container's memory limit
  Time time;
};

struct PeerLostReport {
  std::int64_t round = 0;
  int rank = 0;  // who is said to be lost
  std::string message;
  Time time;
};

// One worker, keyed by pod UID. It stays in the view, with connected == false, after its stream
// ended, until its pod is gone or replaced: reconcile names the dead by what they said last.
struct WorkerView {
  std::string pod;
  std::string pod_uid;
  bool native = false;  // runs the native trainer
  bool connected = false;
  Time last_heard;                      // any frame, heartbeats included
  std::optional<Time> disconnected_at;  // when the stream ended or went silent; set when !connected
  std::int64_t round = 0;               // the round that the worker says it is in; 0 for none
  std::optional<ReadyReport> ready;
  std::optional<ProgressReport> progress;
  std::vector<ShardReport> durable;
  std::vector<CheckpointTrouble> checkpoint_failures;
  std::vector<CheckpointTrouble> checkpoint_rejections;
  std::optional<FinishedReport> finished;
  std::optional<Time> drain_requested;       // it was asked to go (SIGTERM) and wants a checkpoint
  std::optional<std::int64_t> drained_step;  // the step it left at, after Drain
  std::optional<ExitReport> exited;
  std::vector<PeerLostReport> peers_lost;
  // It came only to say its last, which may still be on its way.
  bool departing = false;
  // Its program has ended, it has said everything, and it waits to be let go (Decision::let_go).
  bool leaving = false;
};

struct WorkersView {
  // When this service began to listen for this job's workers, or, if that is later, when it could
  // last not tell who called it: that somebody was not heard of before says nothing of him.
  Time since;
  std::vector<WorkerView> workers;  // any order; one per pod UID
};

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_WORKER_VIEW_H_
