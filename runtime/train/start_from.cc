#include "runtime/train/start_from.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "common/log.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/train/saved_weights.h"

namespace ringmaster::train {
namespace {

using checkpoint::CheckpointId;
using training::v1alpha1::StartFromTake;

// What the ranks load: a checkpoint of a directory, or a file.
using Source = std::optional<CheckpointId>;

constexpr char kFile[] = "file";

std::string TextOf(const Source& source) {
  return source ? fmt::format("{} {} {}", source->step, source->round, source->world_size) : kFile;
}

Source SourceOf(const std::string& text) {
  if (text == kFile) return std::nullopt;
  CheckpointId id;
  std::istringstream(text) >> id.step >> id.round >> id.world_size;
  return id;
}

// What rank 0 sees.
absl::StatusOr<Source> FindFor(const training::v1alpha1::StartFrom& from,
                               const std::filesystem::path& path,
                               const std::filesystem::path& own) {
  std::error_code error;
  if (std::filesystem::equivalent(path, own, error)) {
    return absl::InvalidArgumentError(
        path.string() +
        ": this job writes its own checkpoints there, over those that it starts from; give it "
        "another spec.checkpoint.directory");
  }
  return Find({.path = path, .step = from.step});
}

absl::Status Take(const training::v1alpha1::StartFrom& from, const std::filesystem::path& path,
                  const Source& source, uint64_t total_steps, Replica& replica) {
  RM_ASSIGN_OR_RETURN(const checkpoint::Checkpoint loaded, Load(path, source));
  const bool everything = from.take == StartFromTake::kEverything;
  const absl::Status taken =
      everything ? replica.Restore(loaded) : replica.TakeWeights(loaded, from.except);
  if (!taken.ok()) return {taken.code(), fmt::format("{}: {}", path.string(), Message(taken))};
  if (!everything || replica.step() < total_steps) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: it is of step {}, and this job ends after {}: train for longer, or take an "
                  "earlier one by `step`",
                  path.string(), replica.step(), total_steps));
}

std::string Problem(size_t rank, const std::string& what) {
  return fmt::format("spec.trainer.startFrom: worker {}: {}", rank, what);
}

// The first problem that a rank has; all get the same.
absl::StatusOr<std::optional<std::string>> FirstProblem(collectives::Communicator& communicator,
                                                        const absl::Status& mine) {
  const std::string problem = mine.ok() ? "" : Message(mine);
  RM_ASSIGN_OR_RETURN(
      const std::vector<std::string> problems,
      communicator.AllgatherBytes(std::as_bytes(std::span(problem)), "started from"));
  for (size_t rank = 0; rank < problems.size(); ++rank) {
    if (!problems[rank].empty()) return Problem(rank, problems[rank]);
  }
  return std::nullopt;
}

// Disks of one's own may hold files of the same names that differ.
absl::StatusOr<std::optional<std::string>> CompareWeights(collectives::Communicator& communicator,
                                                          const std::string& path,
                                                          Replica& replica) {
  const std::string digest = replica.WeightsDigest();
  RM_ASSIGN_OR_RETURN(
      const std::vector<std::string> digests,
      communicator.AllgatherBytes(std::as_bytes(std::span(digest)), "weights started from"));
  for (size_t rank = 0; rank < digests.size(); ++rank) {
    if (digests[rank] == digests.front()) continue;
    return Problem(rank, path +
                             ": holds other weights than worker 0 has there; all workers must see "
                             "the same files");
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::optional<std::string>> StartFrom(collectives::Communicator& communicator,
                                                     const Workload& workload,
                                                     const std::filesystem::path& workspace,
                                                     const std::filesystem::path& own,
                                                     Replica& replica) {
  const training::v1alpha1::StartFrom& from = *workload.config().start_from;
  const std::filesystem::path path = workspace / from.path;
  absl::Status mine;
  std::string choice;
  if (communicator.rank() == 0) {
    const absl::StatusOr<Source> source = FindFor(from, path, own);
    if (source.ok()) choice = TextOf(*source);
    mine = source.status();
  }
  RM_ASSIGN_OR_RETURN(
      const std::vector<std::string> choices,
      communicator.AllgatherBytes(std::as_bytes(std::span(choice)), "where to start from"));
  const Source source = SourceOf(choices.front());
  if (!choices.front().empty()) mine = Take(from, path, source, workload.total_steps(), replica);
  RM_ASSIGN_OR_RETURN(const std::optional<std::string> problem, FirstProblem(communicator, mine));
  if (problem) return problem;
  if (communicator.rank() == 0) {
    log::Info("starts from what was trained before",
              {{"path", path.string()},
               {"what", source ? fmt::format("the checkpoint of step {}", source->step) : kFile},
               {"step", replica.step()}});
  }
  return CompareWeights(communicator, from.path, replica);
}

}  // namespace ringmaster::train
