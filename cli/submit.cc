#include "cli/submit.h"

#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/kube/object.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

// The fields of spec.trainer in which two jobs differ.
std::vector<std::string> TrainerDifferences(const Json& stored, const Json& wanted) {
  const Json none = Json::object();
  const Json* before = kube::Find(stored, {"spec", "trainer"});
  const Json* after = kube::Find(wanted, {"spec", "trainer"});
  if (before == nullptr) before = &none;
  if (after == nullptr) after = &none;
  std::set<std::string> fields;
  for (const auto& [field, value] : before->items()) {
    if (!after->contains(field) || (*after)[field] != value) fields.insert("spec.trainer." + field);
  }
  for (const auto& [field, value] : after->items()) {
    if (!before->contains(field)) fields.insert("spec.trainer." + field);
  }
  return {fields.begin(), fields.end()};
}

}  // namespace

bool IsOver(const Json& job) {
  const std::string state = kube::FindString(job, {"status", "state"});
  return state == "Succeeded" || state == "Failed";
}

absl::StatusOr<Submission> Submit(kube::Client& client, const Json& job) {
  const kube::ObjectKey key = kube::KeyOf(job);
  const auto stored = client.Get(kube::kTrainingJob, key);
  if (absl::IsNotFound(stored.status())) {
    RM_RETURN_IF_ERROR(client.Create(kube::kTrainingJob, job).status());
    return Submission::kCreated;
  }
  RM_RETURN_IF_ERROR(stored.status());
  if (const auto fields = TrainerDifferences(*stored, job); !fields.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("the unfinished run of {} trains something else: {} changed. Restore the "
                    "manifest to resume it, or start over with --fresh",
                    key.name, fmt::join(fields, ", ")));
  }
  Json update = *stored;
  update["spec"] = job["spec"];
  RM_RETURN_IF_ERROR(client.Update(kube::kTrainingJob, update).status());
  return Submission::kResumed;
}

}  // namespace ringmaster::cli
