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

absl::StatusOr<std::map<std::string, std::string>> ReadManifests(
    const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (!IsManifest(entry.path())) continue;
    auto text = ReadFile(entry.path());
    if (text.ok()) files[entry.path().filename().string()] = *std::move(text);
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
  RM_ASSIGN_OR_RETURN(const auto files, ReadManifests(folder_));
  for (const auto& [name, text] : files) {
    const auto known = seen_.find(name);
    if (known != seen_.end() && known->second == text) continue;
    const absl::Status status = Apply(folder_ / name, text);
    if (WorthARetry(status)) return Annotate(status, name);
    if (!status.ok()) log::Error("manifest refused", {{"file", name}, {"error", Message(status)}});
    seen_[name] = text;
  }
  return DeleteAllBut(files);
}

absl::Status ManifestFolder::Apply(const std::filesystem::path& file, const std::string& text) {
  RM_ASSIGN_OR_RETURN(api::ParsedJob parsed, api::ParseManifest(text, file.filename().string()));
  Json& job = parsed.object;
  if (kube::Namespace(job).empty()) job["metadata"]["namespace"] = "default";
  kube::SetAnnotation(job, kAnnotationManifest, file.filename().string());
  auto stored = client_.Get(kube::kTrainingJob, kube::KeyOf(job));
  if (absl::IsNotFound(stored.status())) return client_.Create(kube::kTrainingJob, job).status();
  RM_RETURN_IF_ERROR(stored.status());
  const std::string owner = kube::Annotation(*stored, kAnnotationManifest).value_or("");
  if (owner != file.filename().string()) {
    return absl::InvalidArgumentError("metadata.name: job " + kube::Name(job) + " comes from " +
                                      (owner.empty() ? "elsewhere" : owner));
  }
  (*stored)["spec"] = job["spec"];
  return client_.Update(kube::kTrainingJob, *stored).status();
}

absl::Status ManifestFolder::DeleteAllBut(const std::map<std::string, std::string>& files) {
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
