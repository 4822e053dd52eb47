// What reconcile wants told to a job's workers. The manager hands these to the rendezvous
// (operator/manager/worker_link.h) after the status that they speak of is stored, never before.
#ifndef RINGMASTER_OPERATOR_RECONCILE_WORKER_COMMAND_H_
#define RINGMASTER_OPERATOR_RECONCILE_WORKER_COMMAND_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/clock.h"

namespace ringmaster::reconcile {

struct RoundMember {
  int rank = 0;
  std::string pod;
  std::string pod_uid;
  std::string address;  // host:port

  friend bool operator==(const RoundMember&, const RoundMember&) = default;
};

struct CheckpointRef {
  std::int64_t step = 0;
  std::int64_t round = 0;
  std::string digest;
  int world_size = 0;

  friend bool operator==(const CheckpointRef&, const CheckpointRef&) = default;
};

// A stored membership. The key of its connections is the rendezvous service's to add.
struct Announcement {
  std::int64_t round = 0;
  std::vector<RoundMember> members;        // by rank
  int shards = 0;                          // virtual shards; 0 for the plain ring
  std::vector<CheckpointRef> checkpoints;  // candidates to resume from, newest first

  friend bool operator==(const Announcement&, const Announcement&) = default;
};

// Checkpoint at one common step, then leave with exit code 0.
struct DrainCommand {
  std::string reason;
};

// Checkpoint at the next common step boundary and go on.
struct CheckpointNowCommand {
  Time wanted_since;  // tells this wish from the next: it may be told any number of times
};

// Leave now, without a checkpoint.
struct StopCommand {
  std::string reason;
};

// A checkpoint exists; the files of `dropped` may go.
struct CheckpointCommittedCommand {
  CheckpointRef checkpoint;
  std::vector<CheckpointRef> dropped;
};

using WorkerCommand =
    std::variant<DrainCommand, CheckpointNowCommand, StopCommand, CheckpointCommittedCommand>;

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_WORKER_COMMAND_H_
