// What a pod becomes on this machine: processes, with everything resolved.
//
// Planning is pure but for the folders and files of its volumes, which MaterialiseVolumes makes.
// There are no images and no mount namespaces here, so two things differ from a cluster, both by
// design:
//   - a container without a command runs the worker image's entry point, ringmaster-launcher;
//   - a volume is an ordinary folder, and a path under a mountPath in command, args, env values and
//   workingDir is rewritten to it.
// A field that would change what the program does and that cannot be honoured is refused by name.
// Fields that only place a pod on a cluster or fence it in (affinity, tolerations, securityContext,
// image pulling) have no meaning for a single machine and are passed over.
#ifndef RINGMASTER_OPERATOR_NODE_POD_PLAN_H_
#define RINGMASTER_OPERATOR_NODE_POD_PLAN_H_

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "operator/kube/types.h"
#include "operator/node/process.h"

namespace ringmaster::node {

// Resources as a scheduler adds them up.
struct Resources {
  double cpus = 0;
  double memory_bytes = 0;
};

struct ContainerPlan {
  std::string name;
  std::string image;
  ProcessSpec process;
};

enum class RestartPolicy { kAlways, kOnFailure, kNever };

struct PodPlan {
  std::vector<ContainerPlan> containers;
  RestartPolicy restart_policy = RestartPolicy::kAlways;
  std::chrono::seconds grace_period{30};
  Resources requests;
};

// What planning needs to know of the machine and the run.
struct PlanContext {
  std::string pod_ip;
  std::string host_ip;
  std::string node_name;
  std::string bin_directory;     // put first in PATH
  std::string workspace;         // working directory of containers that name none
  std::string log_directory;     // one file per container: <pod>.log, or <pod>.<container>.log if
                                 // there are several
  std::string volume_directory;  // this pod's own volumes
  std::map<std::string, std::string>
      environment;  // what every process starts from (PATH, HOME, LANG ...)
  // Reads ConfigMaps and Secrets of the pod's namespace.
  std::function<absl::StatusOr<kube::Json>(const kube::ResourceType&, const std::string& name)>
      read;
};

// kUnimplemented names a field that cannot be honoured; kInvalidArgument one that is malformed;
// kNotFound a ConfigMap, Secret or key that is not there (worth a retry: it may be created later).
absl::StatusOr<PodPlan> PlanPod(const kube::Json& pod, const PlanContext& context);

// Makes the folders of emptyDir volumes and the files of ConfigMaps and Secrets. Blocks on the
// disk.
absl::Status MaterialiseVolumes(const kube::Json& pod, const PlanContext& context);

// A quantity as Kubernetes writes it: "250m", "1.5", "64Mi", "2G". kInvalidArgument otherwise.
absl::StatusOr<double> ParseQuantity(const std::string& text);

}  // namespace ringmaster::node

#endif  // RINGMASTER_OPERATOR_NODE_POD_PLAN_H_
