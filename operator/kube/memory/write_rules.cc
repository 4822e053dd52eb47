#include "operator/kube/memory/write_rules.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/names.h"
#include "operator/kube/object.h"

namespace ringmaster::kube::memory {
namespace {

using Problems = std::vector<std::string>;

// Metadata that only the server sets.
constexpr std::array kServerFields = {"name",
                                      "namespace",
                                      "uid",
                                      "generation",
                                      "creationTimestamp",
                                      "deletionTimestamp",
                                      "deletionGracePeriodSeconds",
                                      "resourceVersion"};

// As the API server does, so that name and suffix together stay within a DNS label.
constexpr std::size_t kGenerateNameLength = 58;

void Note(Problems& problems, std::string_view path, const std::string& problem) {
  if (!problem.empty()) problems.push_back(fmt::format("{}: {}", path, problem));
}

void CheckStringMap(const Json& metadata, const char* field,
                    std::string (*check_value)(std::string_view), Problems& problems) {
  const Json* map = Find(metadata, {field});
  if (map == nullptr) return;
  if (!map->is_object()) return Note(problems, fmt::format("metadata.{}", field), "must be a map");
  for (const auto& [key, value] : map->items()) {
    Note(problems, fmt::format("metadata.{}", field), ProblemWithLabelKey(key));
    if (!value.is_string()) {
      Note(problems, fmt::format("metadata.{}[{}]", field, key), "must be a string");
    } else if (check_value != nullptr) {
      Note(problems, fmt::format("metadata.{}[{}]", field, key),
           check_value(value.get<std::string>()));
    }
  }
}

void CheckOwners(const Json& metadata, Problems& problems) {
  const Json* references = Find(metadata, {"ownerReferences"});
  if (references == nullptr) return;
  if (!references->is_array()) return Note(problems, "metadata.ownerReferences", "must be a list");
  int controllers = 0;
  for (const Json& reference : *references) {
    for (const char* field : {"apiVersion", "kind", "name", "uid"}) {
      if (FindString(reference, {field}).empty()) {
        Note(problems, fmt::format("metadata.ownerReferences.{}", field), "Required value");
      }
    }
    if (FindBool(reference, {"controller"})) ++controllers;
  }
  if (controllers > 1)
    Note(problems, "metadata.ownerReferences",
         "only one reference can have controller set to true");
}

void CheckFinalizers(const Json& metadata, Problems& problems) {
  const Json* finalizers = Find(metadata, {"finalizers"});
  if (finalizers == nullptr) return;
  if (!finalizers->is_array()) return Note(problems, "metadata.finalizers", "must be a list");
  for (const Json& finalizer : *finalizers) {
    if (!finalizer.is_string()) {
      Note(problems, "metadata.finalizers", "must be strings");
    } else {
      Note(problems, "metadata.finalizers", ProblemWithLabelKey(finalizer.get<std::string>()));
    }
  }
}

Problems CheckMetadata(const Kind& kind, const Json& object) {
  Problems problems;
  const Json& metadata = object["metadata"];
  const std::string name = Name(object);
  if (name.empty()) {
    Note(problems, "metadata.name", "Required value: name or generateName is required");
  } else {
    Note(problems, "metadata.name", kind.problem_with_name(name));
  }
  if (kind.type.namespaced) {
    const std::string ns = Namespace(object);
    Note(problems, "metadata.namespace", ns.empty() ? "Required value" : ProblemWithDnsLabel(ns));
  }
  CheckStringMap(metadata, "labels", ProblemWithLabelValue, problems);
  CheckStringMap(metadata, "annotations", nullptr, problems);
  CheckOwners(metadata, problems);
  CheckFinalizers(metadata, problems);
  return problems;
}

absl::Status RefuseIfAny(const Kind& kind, const Json& object, const Problems& problems) {
  if (problems.empty()) return absl::OkStatus();
  return Invalid(kind.type, Name(object), fmt::format("{}", fmt::join(problems, "; ")));
}

void CopyField(const Json& from, Json& to, const char* field) {
  const auto it = from.find(field);
  if (it == from.end()) {
    to.erase(field);
  } else {
    to[field] = *it;
  }
}

Json Finalizers(const Json& object) {
  const Json* list = Find(object, {"metadata", "finalizers"});
  return list != nullptr && list->is_array() ? *list : Json::array();
}

Problems CheckFinalizerChange(const Json& current, const Json& next) {
  if (!IsDeleting(current)) return {};
  const Json before = Finalizers(current);
  for (const Json& finalizer : Finalizers(next)) {
    if (std::find(before.begin(), before.end(), finalizer) == before.end()) {
      return {fmt::format(
          "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being "
          "deleted, found new finalizer {}",
          finalizer.dump())};
    }
  }
  return {};
}

// Whether anything but metadata and status differs.
bool SpecChanged(Json a, Json b) {
  for (const char* field : {"metadata", "status"}) {
    a.erase(field);
    b.erase(field);
  }
  return a != b;
}

std::chrono::seconds GracePeriod(const Kind& kind, const Json& current,
                                 const DeleteOptions& options) {
  if (!kind.graceful) return std::chrono::seconds(0);
  const std::string phase = FindString(current, {"status", "phase"});
  const bool ended = phase == "Succeeded" || phase == "Failed";
  if (ended || FindString(current, {"spec", "nodeName"}).empty()) return std::chrono::seconds(0);
  const auto own = FindInt(current, {"spec", "terminationGracePeriodSeconds"}).value_or(0);
  return std::max(options.grace_period.value_or(std::chrono::seconds(own)),
                  std::chrono::seconds(0));
}

}  // namespace

absl::Status CheckPreconditions(const Kind& kind, const Json& current, const std::string& uid,
                                const std::string& resource_version) {
  if (!uid.empty() && uid != Uid(current)) {
    return Conflict(kind.type, KeyOf(current),
                    fmt::format("the uid {} is not the stored object's {}", uid, Uid(current)));
  }
  if (!resource_version.empty() && resource_version != ResourceVersion(current)) {
    return Conflict(kind.type, KeyOf(current),
                    "the object has been modified; please apply your changes to the latest version "
                    "and try again");
  }
  return absl::OkStatus();
}

absl::Status CheckBody(const Kind& kind, Json& object) {
  if (!object.is_object()) return BadRequest("the body must be an object");
  for (const auto& [field, expected] : {std::pair{"apiVersion", kind.type.ApiVersion()},
                                        std::pair{"kind", std::string(kind.type.kind)}}) {
    if (!object.contains(field)) object[field] = expected;
    if (object[field] != expected) {
      return BadRequest(fmt::format("{} in the body is {}, expected \"{}\"", field,
                                    object[field].dump(), expected));
    }
  }
  if (!object.contains("metadata")) object["metadata"] = Json::object();
  if (!object["metadata"].is_object()) return BadRequest("metadata must be an object");
  return absl::OkStatus();
}

absl::StatusOr<Json> PrepareCreate(const Kind& kind, Json object, const Birth& birth) {
  RM_RETURN_IF_ERROR(CheckBody(kind, object));
  if (!ResourceVersion(object).empty()) {
    return BadRequest("resourceVersion should not be set on objects to be created");
  }
  Json& metadata = object["metadata"];
  for (const char* field : kServerFields) {
    if (std::string_view(field) != "name" && std::string_view(field) != "namespace")
      metadata.erase(field);
  }
  if (const std::string prefix = FindString(metadata, {"generateName"});
      Name(object).empty() && !prefix.empty()) {
    metadata["name"] = prefix.substr(0, kGenerateNameLength) + birth.name_suffix;
  }
  RM_RETURN_IF_ERROR(RefuseIfAny(kind, object, CheckMetadata(kind, object)));
  metadata["uid"] = birth.uid;
  metadata["creationTimestamp"] = MetaTime(birth.now);
  if (kind.has_status) {
    metadata["generation"] = 1;
    object.erase("status");
  }
  return object;
}

absl::StatusOr<Json> PrepareUpdate(const Kind& kind, const Json& current, Json incoming) {
  RM_RETURN_IF_ERROR(CheckBody(kind, incoming));
  if (ResourceVersion(incoming).empty() && !kind.unconditional_update) {
    return Invalid(kind.type, Name(current),
                   "metadata.resourceVersion: must be specified for an update");
  }
  RM_RETURN_IF_ERROR(CheckPreconditions(kind, current, Uid(incoming), ResourceVersion(incoming)));
  for (const char* field : kServerFields)
    CopyField(current["metadata"], incoming["metadata"], field);
  if (!incoming["metadata"].contains("managedFields")) {
    CopyField(current["metadata"], incoming["metadata"], "managedFields");
  }
  if (kind.has_status) CopyField(current, incoming, "status");
  RM_RETURN_IF_ERROR(RefuseIfAny(kind, incoming, CheckMetadata(kind, incoming)));
  RM_RETURN_IF_ERROR(RefuseIfAny(kind, incoming, CheckFinalizerChange(current, incoming)));
  return incoming;
}

void CountGeneration(const Kind& kind, const Json& current, Json& next) {
  if (kind.has_status && SpecChanged(current, next))
    next["metadata"]["generation"] = Generation(current) + 1;
}

absl::StatusOr<Json> PrepareStatus(const Kind& kind, const Json& current, const Json& patch,
                                   std::string_view resource_version) {
  if (!kind.has_status)
    return absl::NotFoundError(fmt::format("{} have no status", kind.type.Qualified()));
  if (resource_version.empty())
    return BadRequest("a status patch needs the resourceVersion it was computed from");
  if (!patch.is_object()) return BadRequest("a status patch must be an object");
  RM_RETURN_IF_ERROR(CheckPreconditions(kind, current, "", std::string(resource_version)));
  Json next = current;
  if (!next.contains("status")) next["status"] = Json::object();
  MergePatch(next["status"], patch);
  if (next["status"].empty() && !current.contains("status")) next.erase("status");
  return next;
}

Json PlanDeletion(const Kind& kind, const Json& current, const DeleteOptions& options, Time now) {
  const auto grace = GracePeriod(kind, current, options);
  const Json finalizers = Finalizers(current);
  if (grace.count() == 0 && finalizers.empty()) return nullptr;
  Json next = current;
  Json& metadata = next["metadata"];
  const auto running = FindInt(current, {"metadata", "deletionGracePeriodSeconds"});
  if (!IsDeleting(current)) {
    metadata["deletionTimestamp"] = MetaTime(now + grace);
    metadata["deletionGracePeriodSeconds"] = grace.count();
    if (kind.has_status) metadata["generation"] = Generation(current) + 1;
  } else if (running && grace.count() < *running) {
    const auto asked = FindTime(current, {"metadata", "deletionTimestamp"}).value_or(now) -
                       std::chrono::seconds(*running);
    metadata["deletionTimestamp"] = MetaTime(asked + grace);
    metadata["deletionGracePeriodSeconds"] = grace.count();
  }
  return next;
}

bool IsReleased(const Json& object) {
  return IsDeleting(object) && Finalizers(object).empty() &&
         FindInt(object, {"metadata", "deletionGracePeriodSeconds"}).value_or(0) == 0;
}

}  // namespace ringmaster::kube::memory
