// Which pods of a job are which worker's, and whose logs are wanted. Pure.
#ifndef RINGMASTER_CLI_KUBECTL_WORKER_PODS_H_
#define RINGMASTER_CLI_KUBECTL_WORKER_PODS_H_

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "operator/kube/types.h"

namespace ringmaster::cli::kubectl {

// The pods of one worker that are still there, in the order of their incarnations; at least one.
struct WorkerPods {
  int index = 0;
  std::vector<kube::ObjectPtr> pods;
};

// By index. Pods without a worker's labels are left out.
std::vector<WorkerPods> WorkersOf(const std::vector<kube::ObjectPtr>& pods);

// kNotFound when the job never has a worker of this index; names those that it may have.
absl::Status CheckIndex(const nlohmann::json& job, std::optional<int> index);

// Which worker has the rank in the round of the job's status. kNotFound names the ranks that there
// are.
absl::StatusOr<int> IndexOfRank(const nlohmann::json& job, int rank);

// The latest pod of each worker, or of the one with this index. kNotFound: there are none now; the
// message says why.
absl::StatusOr<std::vector<kube::ObjectPtr>> LatestPods(const nlohmann::json& job,
                                                        const std::vector<kube::ObjectPtr>& pods,
                                                        std::optional<int> index);

// What is left of the pods that were replaced: of each worker, or of the one with this index, the
// pod before the latest where it is still there; else what its last incident tells.
struct Replaced {
  std::vector<kube::ObjectPtr> pods;
  std::vector<std::string> last_words;  // "digits-1-0: Worker 1 … exit code 3: <its last lines>"
};
// kNotFound when nothing was replaced, or nothing is left of it.
absl::StatusOr<Replaced> ReplacedPods(const nlohmann::json& job,
                                      const std::vector<kube::ObjectPtr>& pods,
                                      std::optional<int> index);

}  // namespace ringmaster::cli::kubectl

#endif  // RINGMASTER_CLI_KUBECTL_WORKER_PODS_H_
