// A folder whose manifests are the jobs: what a user copies in is created, what changes is updated,
// what is removed is deleted.
//
// For a machine that runs jobs without Kubernetes, as a kubelet runs the manifests of a folder. A
// file is known by its name; the job that came from it carries that name in an annotation, so that
// after a restart only this folder's jobs are touched. A file that is renamed keeps its job. A file
// that is wrong, or cannot be read, is logged once for each version of it, and leaves its job as it
// is; the other files are followed all the same.
//
// One thread uses it.
#ifndef RINGMASTER_OPERATOR_LOCAL_MANIFEST_FOLDER_H_
#define RINGMASTER_OPERATOR_LOCAL_MANIFEST_FOLDER_H_

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube/client.h"

namespace ringmaster::local {

// On a job: the file that it came from.
inline constexpr char kAnnotationManifest[] = "training.ringmaster.dev/manifest";

class ManifestFolder {
 public:
  // By file name: the text, or why it cannot be read.
  using Files = std::map<std::string, absl::StatusOr<std::string>>;

  // `client` must outlive it.
  ManifestFolder(std::filesystem::path folder, kube::Client& client)
      : folder_(std::move(folder)), client_(client) {}

  // Brings the jobs in line with the files *.yaml and *.yml as they are now. An error is the
  // folder's own, or the client's first; a wrong file is none.
  absl::Status Sync();

 private:
  absl::Status Follow(const std::string& name, const absl::StatusOr<std::string>& text,
                      const Files& files);
  absl::Status Apply(const std::string& file, const std::string& text, const Files& files);
  absl::Status DeleteAllBut(const Files& files);

  const std::filesystem::path folder_;
  kube::Client& client_;
  Files seen_;  // what was last applied or refused
};

}  // namespace ringmaster::local

#endif  // RINGMASTER_OPERATOR_LOCAL_MANIFEST_FOLDER_H_
