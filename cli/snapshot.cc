#include "cli/snapshot.h"

#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/file.h"
#include "common/status.h"
#include "common/temporary_folder.h"
#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"

namespace ringmaster::cli {
namespace {

using kube::memory::MemoryStore;

absl::Status NoSuchJob(const RunDirectory& directory) {
  const std::filesystem::path root = directory.path().parent_path().parent_path();
  const std::vector<std::string> jobs = JobsUnder(root);
  return absl::NotFoundError(
      fmt::format("{}: no such job under {}{}", directory.job(), root.string(),
                  jobs.empty() ? "" : fmt::format("; there are: {}", fmt::join(jobs, ", "))));
}

absl::Status Damaged(const RunDirectory& directory, const absl::Status& status,
                     const std::string& copy) {
  std::string message = Message(status);
  if (message.starts_with(copy)) message.replace(0, copy.size(), directory.journal().string());
  return absl::Status(status.code(), message);
}

std::vector<nlohmann::json> ListAll(MemoryStore& store, const kube::ResourceType& type) {
  std::vector<nlohmann::json> objects;
  const auto list = store.List(type, "", {});
  if (!list.ok()) return objects;
  for (const kube::ObjectPtr& object : list->items) objects.push_back(*object);
  return objects;
}

}  // namespace

absl::StatusOr<Snapshot> Snapshot::Of(const RunDirectory& directory) {
  const auto content = ReadFile(directory.journal());
  if (absl::IsNotFound(content.status())) return NoSuchJob(directory);
  if (!content.ok()) return content.status();
  RM_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::Make());
  kube::memory::StoreOptions options;
  options.journal_path = (folder.path() / "store.journal").string();
  RM_RETURN_IF_ERROR(WriteFileAtomically(options.journal_path, *content));
  const auto store = MemoryStore::Open(options);
  if (!store.ok()) return Damaged(directory, store.status(), options.journal_path);
  std::vector<nlohmann::json> jobs = ListAll(**store, kube::kTrainingJob);
  if (jobs.empty()) return NoSuchJob(directory);
  Snapshot snapshot;
  snapshot.job_ = std::move(jobs.front());
  snapshot.events_ = ListAll(**store, kube::kEvent);
  return snapshot;
}

}  // namespace ringmaster::cli
