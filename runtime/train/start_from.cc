#include "runtime/train/start_from.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/contract.h"
#include "common/log.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/train/saved_weights.h"

namespace ringmaster::train {
namespace {

using checkpoint::CheckpointId;
using training::v1alpha1::StartFromTake;

constexpr char kField[] = "spec.trainer.startFrom";

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

// Into the replica; gives the digest of the files.
absl::StatusOr<std::string> Take(const training::v1alpha1::StartFrom& from,
                                 const std::filesystem::path& path, const Source& source,
                                 uint64_t total_steps, Replica& replica) {
  RM_ASSIGN_OR_RETURN(const checkpoint::Checkpoint loaded, Load(path, source));
  const bool everything = from.take == StartFromTake::kEverything;
  const absl::Status taken =
      everything ? replica.Restore(loaded) : replica.TakeWeights(loaded, from.except);
  if (!taken.ok()) return Annotate(taken, path.string());
  replica.ForgetImprovement();
  if (everything && replica.step() >= total_steps) {
    return absl::InvalidArgumentError(
        fmt::format("{}: it is of step {}, and this job ends after {}: train for longer, or take "
                    "an earlier one by `step`",
                    path.string(), replica.step(), total_steps));
  }
  return loaded.digest();
}

// How a rank fared, as the others are told: whether it has what it wanted, and the digest of the
// files, or the status.
std::string Encode(const absl::StatusOr<std::string>& taken) {
  return fmt::format("{} {}", static_cast<int>(taken.status().code()),
                     taken.ok() ? *taken : Message(taken.status()));
}

absl::StatusOr<std::string> Decode(const std::string& text) {
  const size_t space = text.find(' ');
  int code = static_cast<int>(absl::StatusCode::kInternal);
  std::istringstream(text.substr(0, space)) >> code;
  const std::string rest = space == std::string::npos ? "" : text.substr(space + 1);
  if (code == static_cast<int>(absl::StatusCode::kOk)) return rest;
  return absl::Status(static_cast<absl::StatusCode>(code), rest);
}

// Reading that failed for reasons of the machine may help another time.
int ExitCodeOf(const absl::Status& status) {
  if (absl::IsFailedPrecondition(status)) return contract::kExitBadConfig;
  return absl::IsDataLoss(status) ? contract::kExitBadData : ExitCodeFor(status);
}

// How all ranks fared.
struct Verdict {
  absl::Status status;   // of the first with which something is wrong; they may differ, too
  size_t rank = 0;       // that one
  std::string choice{};  // TextOf what was loaded; empty where nothing was found
};

Verdict Judge(const std::string& path, std::string choice,
              const std::vector<std::string>& answers) {
  Verdict verdict{.choice = std::move(choice)};
  for (; verdict.rank < answers.size(); ++verdict.rank) {
    verdict.status = Decode(answers[verdict.rank]).status();
    if (!verdict.status.ok()) break;
    if (answers[verdict.rank] == answers.front()) continue;
    verdict.status = absl::FailedPreconditionError(
        path + ": holds other files than worker 0 has there; all workers must see the same");
    break;
  }
  return verdict;
}

absl::StatusOr<Verdict> TryOnce(collectives::Communicator& communicator, const Workload& workload,
                                const std::filesystem::path& path, Replica& replica) {
  const training::v1alpha1::StartFrom& from = *workload.config().start_from;
  absl::StatusOr<std::string> mine{std::string()};
  std::string choice;
  if (communicator.rank() == 0) {
    const absl::StatusOr<Source> source = Find({.path = path, .step = from.step});
    if (source.ok()) {
      choice = TextOf(*source);
    } else {
      mine = source.status();
    }
  }
  RM_ASSIGN_OR_RETURN(
      const std::vector<std::string> choices,
      communicator.AllgatherBytes(std::as_bytes(std::span(choice)), "where to start from"));
  if (!choices.front().empty())
    mine = Take(from, path, SourceOf(choices.front()), workload.total_steps(), replica);
  const std::string answer = Encode(mine);
  RM_ASSIGN_OR_RETURN(
      const std::vector<std::string> answers,
      communicator.AllgatherBytes(std::as_bytes(std::span(answer)), "started from"));
  return Judge(from.path, choices.front(), answers);
}

}  // namespace

absl::Status CheckStartFrom(const training::v1alpha1::StartFrom& from,
                            const std::filesystem::path& workspace,
                            const std::filesystem::path& own) {
  const std::filesystem::path path = workspace / from.path;
  std::error_code error;
  const std::filesystem::path directory =
      std::filesystem::is_directory(path, error) ? path : path.parent_path();
  if (!std::filesystem::equivalent(directory, own, error)) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{}.path: {} is where this job writes its own checkpoints, over those that it starts from; "
      "give it another spec.checkpoint.directory",
      kField, path.string()));
}

absl::StatusOr<std::optional<Ending>> StartFrom(collectives::Communicator& communicator,
                                                const Workload& workload,
                                                const std::filesystem::path& workspace,
                                                Replica& replica) {
  constexpr int kTries = 3;
  const training::v1alpha1::StartFrom& from = *workload.config().start_from;
  const std::filesystem::path path = workspace / from.path;
  for (int i = 1;; ++i) {
    RM_ASSIGN_OR_RETURN(const Verdict verdict, TryOnce(communicator, workload, path, replica));
    if (verdict.status.ok()) {
      if (communicator.rank() == 0) {
        log::Info("starts from what was trained before",
                  {{"path", path.string()}, {"what", verdict.choice}, {"step", replica.step()}});
      }
      return std::nullopt;
    }
    const bool is_newest = !verdict.choice.empty() && verdict.choice != kFile && !from.step;
    if (is_newest && absl::IsNotFound(verdict.status) && i < kTries) {
      replica.Reset();
      continue;
    }
    return Ending{
        .exit_code = ExitCodeOf(verdict.status),
        .message = fmt::format("{}: worker {}: {}", kField, verdict.rank, Message(verdict.status))};
  }
}

}  // namespace ringmaster::train
