#include "runtime/train/restore.h"

#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/status.h"
#include "runtime/checkpoint/loader.h"

namespace ringmaster::train {
namespace {

using checkpoint::CheckpointRef;

std::string Encode(std::span<const CheckpointRef> refs) {
  std::string text;
  for (const CheckpointRef& ref : refs) {
    text += fmt::format("{} {} {} {}\n", ref.id.step, ref.id.round, ref.id.world_size, ref.digest);
  }
  return text;
}

std::vector<CheckpointRef> Decode(const std::string& text) {
  std::vector<CheckpointRef> refs;
  std::istringstream in(text);
  CheckpointRef ref;
  while (in >> ref.id.step >> ref.id.round >> ref.id.world_size >> ref.digest) refs.push_back(ref);
  return refs;
}

// Ranks may have been told the same round with lists of different age: rank 0's counts.
absl::StatusOr<std::vector<CheckpointRef>> ListOfRankZero(
    collectives::Communicator& communicator, std::span<const CheckpointRef> candidates) {
  const std::string mine = communicator.rank() == 0 ? Encode(candidates) : "";
  RM_ASSIGN_OR_RETURN(const std::vector<std::string> lists,
                      communicator.AllgatherBytes(std::as_bytes(std::span(mine)), "checkpoints"));
  return Decode(lists.front());
}

absl::Status TryRestore(const std::filesystem::path& directory, const CheckpointRef& ref,
                        Replica& replica) {
  RM_ASSIGN_OR_RETURN(const checkpoint::Checkpoint loaded, checkpoint::Load(directory, ref));
  return replica.Restore(loaded);
}

}  // namespace

absl::StatusOr<std::vector<CheckpointRef>> RestoreNewest(
    collectives::Communicator& communicator, const std::filesystem::path& directory,
    std::span<const CheckpointRef> candidates, Replica& replica,
    const std::function<void(const CheckpointRef&, const absl::Status&)>& rejected) {
  RM_ASSIGN_OR_RETURN(std::vector<CheckpointRef> list, ListOfRankZero(communicator, candidates));
  while (!list.empty()) {
    const absl::Status mine = TryRestore(directory, list.front(), replica);
    if (!mine.ok()) rejected(list.front(), mine);
    const int64_t loaded = mine.ok() ? 1 : 0;
    int64_t everywhere = 0;
    RM_RETURN_IF_ERROR(communicator.Allreduce(collectives::Reduction::kMin, {&loaded, 1},
                                              {&everywhere, 1}, "checkpoint loaded"));
    if (everywhere != 0) return list;
    list.erase(list.begin());
  }
  replica.Reset();
  return list;
}

}  // namespace ringmaster::train
