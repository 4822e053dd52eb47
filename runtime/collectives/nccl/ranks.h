// Which rank works on which device: what each rank tells the others of its machine, and what
// follows from all of it. Pure.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_NCCL_RANKS_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_NCCL_RANKS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ringmaster::collectives::nccl {

// NCCL's own, which lets ranks share a device: another number than 0.
inline constexpr char kShareVariable[] = "NCCL_MULTI_RANK_GPU_ENABLE";

struct RankFacts {
  std::string problem;               // why this rank cannot use NCCL; empty: it can
  std::string version;               // NCCL's
  std::string machine;               // the same on ranks that see the same hardware
  bool may_share = false;            // NCCL lets this rank have a device with another
  std::vector<std::string> devices;  // those that this rank sees, by their places on the bus
};

// One line each; kDataLoss: it is not what ToText makes.
std::string ToText(const RankFacts& facts);
absl::StatusOr<RankFacts> FactsFromText(const std::string& text);

struct Seat {
  int ordinal = 0;  // of the rank's devices
  int ranks = 1;    // that have this device, itself among them
};

// For each rank, which of its devices it takes: no two ranks of a machine the same, wherever that
// can be. Where it cannot, ranks that may share take one that few have. kFailedPrecondition, naming
// ranks and what to do: one has a problem, two have different versions, or one that may not share
// would have to.
absl::StatusOr<std::vector<Seat>> AssignDevices(std::span<const RankFacts> ranks);

}  // namespace ringmaster::collectives::nccl

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_NCCL_RANKS_H_
