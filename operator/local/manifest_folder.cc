#include "operator/local/manifest_folder.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "operator/api/parse.h"
#include "operator/kube/object.h"

namespace ringmaster::local {
namespace {

using kube::Json;

bool IsManifest(const std::filesystem::path& path) {
  // Editors' and copying programs' temporary files begin with a dot.
  if (path.filename().string().starts_with('.')) return false;
  return path.extension() == ".yaml" || path.extension() == ".yml";
}

// Every manifest by file name, with its text or why it cannot be read.
absl::StatusOr<ManifestFolder::Files> ReadManifests(const std::filesystem::path& folder) {
  ManifestFolder::Files files;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (IsManifest(entry->path()))
      files.emplace(entry->path().filename().string(), ReadFile(entry->path()));
  }
  if (error) return ErrnoStatus(error.value(), folder.string());
  return files;
}

// Never a file's fault: the store is away or full, or somebody else was faster.
bool WorthARetry(const absl::Status& status) {
  return !status.ok() && !absl::IsInvalidArgument(status);
}

}  // namespace

absl::Status ManifestFolder::Sync() {
  RM_ASSIGN_OR_RETURN(const Files files, ReadManifests(folder_));
  absl::Status first_error;
  for (const auto& [name, text] : files) first_error.Update(Follow(name, text, files));
  first_error.Update(DeleteAllBut(files));
  return first_error;
}

absl::Status ManifestFolder::Follow(const std::string& name,
                                    const absl::StatusOr<std::string>& text, const Files& files) {
  const auto known = seen_.find(name);
  if (known != seen_.end() && known->second == text) return absl::OkStatus();
  absl::Status status = text.status();
  if (status.ok()) {
    status = Apply(name, *text, files);
    if (WorthARetry(status)) return Annotate(status, name);
  }
  if (!status.ok()) log::Error("manifest refused", {{"file", name}, {"error", Message(status)}});
  seen_.insert_or_assign(name, text);
  return absl::OkStatus();
}

absl::Status ManifestFolder::Apply(const std::string& file, const std::string& text,
                                   const Files& files) {
  RM_ASSIGN_OR_RETURN(api::ParsedJob parsed, api::ParseManifest(text, file));
  Json& job = parsed.object;
  if (kube::Namespace(job).empty()) job["metadata"]["namespace"] = "default";
  kube::SetAnnotation(job, kAnnotationManifest, file);
  auto stored = client_.Get(kube::kTrainingJob, kube::KeyOf(job));
  if (absl::IsNotFound(stored.status())) return client_.Create(kube::kTrainingJob, job).status();
  RM_RETURN_IF_ERROR(stored.status());
  if (kube::IsDeleting(*stored))
    return absl::UnavailableError(kube::Name(job) + ": the job of this name is still going");
  const std::string owner = kube::Annotation(*stored, kAnnotationManifest).value_or("");
  if (owner.empty() || (owner != file && files.contains(owner))) {
    return absl::InvalidArgumentError("metadata.name: job " + kube::Name(job) + " comes from " +
                                      (owner.empty() ? "elsewhere" : owner));
  }
  kube::SetAnnotation(*stored, kAnnotationManifest, file);
  (*stored)["spec"] = job["spec"];
  return client_.Update(kube::kTrainingJob, *stored).status();
}

absl::Status ManifestFolder::DeleteAllBut(const Files& files) {
  std::erase_if(seen_, [&](const auto& seen) { return !files.contains(seen.first); });
  RM_ASSIGN_OR_RETURN(const kube::ObjectList jobs, client_.List(kube::kTrainingJob, "", {}));
  for (const kube::ObjectPtr& job : jobs.items) {
    const auto manifest = kube::Annotation(*job, kAnnotationManifest);
    if (!manifest || files.contains(*manifest) || kube::IsDeleting(*job)) continue;
    log::Info("manifest removed, job deleted", {{"file", *manifest}, {"job", kube::Name(*job)}});
    const absl::Status status =
        client_.Delete(kube::kTrainingJob, kube::KeyOf(*job), {.uid = kube::Uid(*job)});
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  return absl::OkStatus();
}

}  // namespace ringmaster::local
