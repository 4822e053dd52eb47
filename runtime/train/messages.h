// What a trainer is told and what it tells, as plain values. The channel (channel.h) translates
// them to and from the protocol's messages (proto/ringmaster/rendezvous/v1), whose comments say
// what each means to the operator.
#ifndef RINGMASTER_RUNTIME_TRAIN_MESSAGES_H_
#define RINGMASTER_RUNTIME_TRAIN_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/checkpoint/shard_name.h"
#include "runtime/collectives/membership.h"
#include "runtime/train/evaluation.h"

namespace ringmaster::train {

// Commands.

// A membership to train in from now on, from the newest of `checkpoints` that loads.
struct Round {
  int64_t number = 0;
  int rank = 0;
  std::vector<collectives::Member> members;  // by rank
  std::string key;
  int shards = 0;                                      // 0: the plain ring
  std::vector<checkpoint::CheckpointRef> checkpoints;  // newest first
};

// Checkpoint at one common step, then leave. `alone`: the others do not leave, they wait for the
// round without this worker.
struct Drain {
  std::string reason;
  bool alone = false;
};

// Checkpoint at the next common step boundary and go on.
struct CheckpointNow {};

// Leave now.
struct Stop {
  std::string reason;
};

// A checkpoint exists from now on, and those of `dropped` do not any more.
struct CheckpointCommitted {
  checkpoint::CheckpointRef checkpoint;
  std::vector<checkpoint::CheckpointRef> dropped;
};

using Command = std::variant<Round, Drain, CheckpointNow, Stop, CheckpointCommitted>;

// Events.

struct Ready {
  std::string address;
  std::string kernels_digest;
  std::string model;  // "lenet-bn, 61,514 parameters"
  int64_t parameters = 0;
  int64_t total_steps = 0;
};

struct Progress {
  int64_t step = 0;
  int64_t total_steps = 0;
  double epoch = 0;
  double loss = 0;
  std::optional<Evaluation> evaluation;  // the last one
  double samples_per_second = 0;
  double step_seconds = 0;
  double allreduce_seconds = 0;
  int64_t skipped_steps = 0;  // of the steps, left out for a loss that is not finite
};

struct ShardDurable {
  int64_t step = 0;
  std::string digest;
  double seconds = 0;
  int64_t bytes = 0;
  std::optional<double> metric_value;  // of the job's metric, where this step was evaluated
};

struct CheckpointFailed {
  int64_t step = 0;
  std::string message;
};

struct CheckpointRejected {
  int64_t step = 0;
  std::string message;
};

struct PeerLost {
  int rank = -1;  // -1: nobody is to blame in particular
  std::string message;
};

struct LabelAuroc {
  std::string name;
  std::optional<double> auroc;
};

struct Finished {
  std::string weights_sha256;
  int64_t steps = 0;
  double loss = 0;
  std::optional<Evaluation> evaluation;  // of the last step; nothing when nothing is held out
  std::string stopped_early;             // why; empty where it went to its last step
  std::vector<LabelAuroc> labels{};      // of data with independent labels
  int64_t skipped_steps = 0;             // of the steps, left out for a loss that is not finite
};

struct Drained {
  int64_t step = 0;
};

using Event = std::variant<Ready, Progress, ShardDurable, CheckpointFailed, CheckpointRejected,
                           PeerLost, Finished, Drained>;

// Where events go. Thread-safe: the session and its checkpoint writer both send. Does not fail: an
// event that cannot be delivered means that the launcher is gone, which the Inbox will say.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // `round` is the one that the event speaks of, 0 before the first.
  virtual void Send(int64_t round, const Event& event) = 0;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_MESSAGES_H_
