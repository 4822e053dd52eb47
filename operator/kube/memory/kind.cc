#include "operator/kube/memory/kind.h"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "operator/kube/names.h"
#include "operator/kube/object.h"

namespace ringmaster::kube::memory {
namespace {

constexpr int kDefaultGraceSeconds = 30;
constexpr Duration kEventLifetime = std::chrono::hours(1);

void CheckContainers(const Json& pod, const char* field, bool required,
                     std::vector<std::string>& problems) {
  const Json* containers = Find(pod, {"spec", field});
  if (containers == nullptr || !containers->is_array() || containers->empty()) {
    if (required) problems.push_back(fmt::format("spec.{}: Required value", field));
    return;
  }
  std::set<std::string> names;
  for (std::size_t i = 0; i < containers->size(); ++i) {
    const std::string name = FindString((*containers)[i], {"name"});
    const std::string problem = ProblemWithDnsLabel(name);
    if (!problem.empty()) {
      problems.push_back(fmt::format("spec.{}[{}].name: {}", field, i, problem));
    } else if (!names.insert(name).second) {
      problems.push_back(fmt::format("spec.{}[{}].name: \"{}\" is there twice", field, i, name));
    }
  }
}

absl::Status AdmitNewPod(Json& pod) {
  std::vector<std::string> problems;
  CheckContainers(pod, "containers", true, problems);
  CheckContainers(pod, "initContainers", false, problems);
  const std::string policy = FindString(pod, {"spec", "restartPolicy"});
  if (!policy.empty() && policy != "Always" && policy != "OnFailure" && policy != "Never") {
    problems.push_back(
        fmt::format("spec.restartPolicy: \"{}\" must be Always, OnFailure or Never", policy));
  }
  if (!problems.empty())
    return absl::InvalidArgumentError(fmt::format("{}", fmt::join(problems, "; ")));
  Json& spec = pod["spec"];
  if (policy.empty()) spec["restartPolicy"] = "Always";
  if (!spec.contains("terminationGracePeriodSeconds"))
    spec["terminationGracePeriodSeconds"] = kDefaultGraceSeconds;
  pod["status"] = {{"phase", "Pending"}};
  return absl::OkStatus();
}

void EraseImages(Json& spec, const char* field) {
  const auto containers = spec.find(field);
  if (containers == spec.end() || !containers->is_array()) return;
  for (Json& container : *containers) {
    if (container.is_object()) container.erase("image");
  }
}

// The spec without what an update may change.
Json ImmutablePart(const Json& pod, bool bound) {
  Json spec = pod.value("spec", Json::object());
  if (!spec.is_object()) return spec;
  if (!bound) spec.erase("nodeName");
  EraseImages(spec, "containers");
  EraseImages(spec, "initContainers");
  return spec;
}

absl::Status AdmitChangedPod(const Json& pod, const Json& current) {
  const bool bound = !FindString(current, {"spec", "nodeName"}).empty();
  if (ImmutablePart(pod, bound) == ImmutablePart(current, bound)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "spec: Forbidden: pod updates may not change fields other than containers' images, and "
      "nodeName once");
}

}  // namespace

absl::Status AdmitPod(AdmissionRequest& request) {
  switch (request.operation) {
    case Operation::kCreate:
      return AdmitNewPod(request.object);
    case Operation::kUpdate:
      return AdmitChangedPod(request.object, *request.current);
    case Operation::kUpdateStatus:
      break;
  }
  return absl::OkStatus();
}

std::vector<Kind> BuiltInKinds() {
  return {
      {.type = kTrainingJob,
       .has_status = true,
       .unconditional_update = false,
       .problem_with_name = ProblemWithDnsSubdomain},
      {.type = kPod,
       .has_status = true,
       .graceful = true,
       .problem_with_name = ProblemWithDnsSubdomain,
       .admission = AdmitPod},
      {.type = kService, .has_status = true, .problem_with_name = ProblemWithServiceName},
      {.type = kEvent, .problem_with_name = ProblemWithDnsSubdomain, .lifetime = kEventLifetime},
      {.type = kConfigMap, .problem_with_name = ProblemWithDnsSubdomain},
      {.type = kSecret, .problem_with_name = ProblemWithDnsSubdomain},
      {.type = kLease, .unconditional_update = false, .problem_with_name = ProblemWithDnsSubdomain},
  };
}

}  // namespace ringmaster::kube::memory
