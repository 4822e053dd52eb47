#include "operator/api/salvage.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "operator/api/defaults.h"
#include "operator/api/validation.h"
#include "proto/schema/path.h"

namespace ringmaster::api {
namespace {

using Json = nlohmann::json;
using training::v1alpha1::SchemaOf;
using training::v1alpha1::TrainingJob;
using training::v1alpha1::TrainingJobStatus;

Json* Child(Json& at, const schema::Step& step) {
  if (const auto* name = std::get_if<std::string>(&step))
    return at.is_object() && at.contains(*name) ? &at[*name] : nullptr;
  const std::size_t index = std::get<std::size_t>(step);
  return at.is_array() && index < at.size() ? &at[index] : nullptr;
}

void Remove(const std::string& path, Json& object) {
  const auto steps = schema::ParsePath(path);
  if (!steps.ok()) return;
  Json* at = &object;
  for (std::size_t i = 0; i + 1 < steps->size(); ++i) {
    at = Child(*at, (*steps)[i]);
    if (at == nullptr) return;
  }
  const auto* name = std::get_if<std::string>(&steps->back());
  if (name != nullptr && at->is_object()) at->erase(*name);
}

// Whose job it is and how far it has come: what must be known even of a job that is mostly wrong.
TrainingJob LeastOf(const Json& object) {
  TrainingJob job;
  const Json* managed_by = schema::FindPath(object, "spec.managedBy");
  if (managed_by != nullptr && managed_by->is_string()) job.spec.managed_by = *managed_by;
  if (const Json* status = schema::FindPath(object, "status")) {
    auto read = training::v1alpha1::FromJson<TrainingJobStatus>(*status);
    if (read.ok()) job.status = *std::move(read);
  }
  return job;
}

// Whether both say the same beside metadata and status, under the same name.
bool AskForTheSame(const Json& object, const Json& earlier) {
  if (!object.is_object() || !earlier.is_object()) return false;
  const auto others = [](const Json& of) {
    return of.size() - of.count("metadata") - of.count("status");
  };
  for (const auto& [name, value] : object.items()) {
    if (name == "metadata" || name == "status") continue;
    const auto found = earlier.find(name);
    if (found == earlier.end() || *found != value) return false;
  }
  const Json* name = schema::FindPath(object, "metadata.name");
  const Json* before = schema::FindPath(earlier, "metadata.name");
  return others(object) == others(earlier) && name != nullptr && before != nullptr &&
         *name == *before;
}

}  // namespace

void RemoveRefused(const std::vector<schema::Problem>& refused, Json& object) {
  for (const schema::Problem& problem : refused) Remove(problem.path, object);
}

StoredJob ReadStored(const Json& object) {
  StoredJob stored;
  Json rest = object;
  stored.problems = schema::CheckAndDefault(SchemaOf<TrainingJob>(), rest);
  bool whole = stored.problems.empty();
  if (!whole) {
    RemoveRefused(stored.problems, rest);
    rest["metadata"] = {{"name", "any"}};
    whole = schema::CheckAndDefault(SchemaOf<TrainingJob>(), rest).empty();
  }
  if (whole) {
    FromCheckedJson(rest, stored.job);
    for (schema::Problem& problem : Validate(stored.job))
      stored.problems.push_back(std::move(problem));
  } else {
    stored.job = LeastOf(object);
  }
  if (object.contains("metadata")) stored.job.metadata = object["metadata"];
  ApplyDerivedDefaults(stored.job.spec);
  return stored;
}

StoredJob ReadStored(const Json& object, const Json& earlier, const StoredJob& read) {
  if (!read.problems.empty() || !AskForTheSame(object, earlier)) return ReadStored(object);
  const Json* metadata = schema::FindPath(object, "metadata");
  if (metadata == nullptr || !metadata->is_object()) return ReadStored(object);
  std::optional<TrainingJobStatus> status;
  if (const Json* written = schema::FindPath(object, "status")) {
    auto decoded = training::v1alpha1::FromJson<TrainingJobStatus>(*written);
    if (!decoded.ok()) return ReadStored(object);
    status = *std::move(decoded);
  }
  StoredJob stored{.job = {.metadata = *metadata, .spec = read.job.spec}};
  stored.job.status = std::move(status);
  return stored;
}

}  // namespace ringmaster::api
