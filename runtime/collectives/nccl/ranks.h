// Which rank works on which device: what each rank tells the others of its machine, and what
// follows from all of it. Pure.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_NCCL_RANKS_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_NCCL_RANKS_H_

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ringmaster::collectives::nccl {

struct RankFacts {
  std::string problem;               // why this rank cannot use NCCL; empty: it can
  std::string version;               // NCCL's
  std::string machine;               // the same on ranks that see the same hardware
  std::vector<std::string> devices;  // those that this rank sees, by their places on the bus
};

// One line each; kDataLoss: it is not what ToText makes.
std::string ToText(const RankFacts& facts);
absl::StatusOr<RankFacts> FactsFromText(const std::string& text);

// For each rank, which of its devices it takes: no two ranks of a machine the same. Ranks that see
// few choose first, then by rank. kFailedPrecondition, naming ranks and what to do: one has a
// problem, two have different versions, or a machine has fewer devices than ranks.
absl::StatusOr<std::vector<int>> AssignDevices(std::span<const RankFacts> ranks);

}  // namespace ringmaster::collectives::nccl

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_NCCL_RANKS_H_
