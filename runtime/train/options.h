// What a session is started with, beside the job's configuration.
#ifndef RINGMASTER_RUNTIME_TRAIN_OPTIONS_H_
#define RINGMASTER_RUNTIME_TRAIN_OPTIONS_H_

#include <chrono>
#include <string>

#include "common/clock.h"
#include "runtime/collectives/algorithm.h"
#include "runtime/kernels/kernel.h"
#include "runtime/train/parts.h"

namespace ringmaster::train {

// Each breaks one of the rules that make the bits independent of the world size. They exist so that
// a test sees that a comparison of digests would notice; no manifest can set them
// (RINGMASTER_DEBUG_ARRIVAL_ORDER, _LOCAL_STREAMS and _LOCAL_STATISTICS do).
struct DebugSwitches {
  bool arrival_order = false;     // gradients are added by rank, not in the tree's order
  bool local_streams = false;     // random numbers are keyed by the place on the worker
  bool local_statistics = false;  // running statistics see the worker's own shards only
};

struct SessionOptions {
  std::string workspace = ".";  // what relative paths start from
  std::string job;              // "namespace/name"
  std::string worker;           // the pod's name, for the timeline; its rank where empty
  Parts parts;                  // of the user's own, that the job may name
  std::string listen =
      "127.0.0.1:0";  // numeric address:port for the peers; port 0 takes a free one
  kernels::Selection kernels = kernels::Selection::kFastest;
  DebugSwitches debug;
  const Clock* clock = &SystemClock();  // of checkpoints by time

  // How long a peer may take to connect, and may be silent inside an operation; see
  // collectives::CommunicatorOptions.
  std::chrono::milliseconds connect_timeout{60'000};
  std::chrono::milliseconds operation_timeout{60'000};
  // What the collectives take; see collectives::CommunicatorOptions.
  collectives::Algorithm algorithm = collectives::Algorithm::kAuto;
  std::string congestion_control = "auto";
  // How long to wait for the next round: the operator may have to find a machine first.
  Duration round_timeout = std::chrono::hours(2);
  // How long the last checkpoint may take to reach the disk.
  Duration flush_timeout = std::chrono::minutes(10);
  // How long to wait at the end until the last checkpoint is in the job's status; then it leaves
  // anyway, for the operator has all that it needs.
  Duration commit_timeout = std::chrono::seconds(5);
  // Least time between two progress events.
  Duration progress_period = std::chrono::milliseconds(200);
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_OPTIONS_H_
