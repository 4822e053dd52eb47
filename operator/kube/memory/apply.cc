#include "operator/kube/memory/apply.h"

#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "operator/kube/errors.h"
#include "operator/kube/memory/field_set.h"
#include "operator/kube/memory/write_rules.h"
#include "operator/kube/object.h"

namespace ringmaster::kube::memory {
namespace {

// The part of the applied object that field managers own: what identifies it, and what is the
// server's, is not.
Json OwnablePart(const Kind& kind, Json object) {
  for (const char* field : {"apiVersion", "kind"}) object.erase(field);
  if (kind.has_status) object.erase("status");
  Json& metadata = object["metadata"];
  constexpr std::array kNotOwned = {
      "name",       "namespace",         "uid",          "resourceVersion",
      "generation", "creationTimestamp", "generateName", "managedFields"};
  for (const char* field : kNotOwned) metadata.erase(field);
  if (metadata.empty()) object.erase("metadata");
  return object;
}

Json ManagedFields(const Json* current) {
  const Json* entries =
      current == nullptr ? nullptr : Find(*current, {"metadata", "managedFields"});
  return entries != nullptr && entries->is_array() ? *entries : Json::array();
}

bool IsManagedBy(const Json& entry, const std::string& manager) {
  return FindString(entry, {"manager"}) == manager;
}

// Finds what others own with other values; with `force` takes it from them.
absl::Status Contest(const Kind& kind, const Json& current, const Json& wanted, const Json& fields,
                     const ApplyOptions& options, Json& entries) {
  std::vector<std::string> conflicts;
  for (Json& entry : entries) {
    if (IsManagedBy(entry, options.field_manager)) continue;
    for (const FieldSteps& steps : Disagreements(fields, entry["fieldsV1"], current, wanted)) {
      if (options.force) {
        EraseSteps(entry["fieldsV1"], steps);
      } else {
        conflicts.push_back(
            fmt::format("{} is owned by \"{}\"", ToText(steps), FindString(entry, {"manager"})));
      }
    }
  }
  if (conflicts.empty()) return absl::OkStatus();
  return Conflict(kind.type, KeyOf(current),
                  fmt::format("apply failed: {}", fmt::join(conflicts, "; ")));
}

// Records the manager's new set; its time only moves when the set does.
void SetFields(const Kind& kind, Json& entries, const std::string& manager, Json fields, Time now) {
  for (Json& entry : entries) {
    if (!IsManagedBy(entry, manager)) continue;
    if (entry["fieldsV1"] == fields) return;
    entry["fieldsV1"] = std::move(fields);
    entry["time"] = MetaTime(now);
    return;
  }
  entries.push_back({{"manager", manager},
                     {"operation", "Apply"},
                     {"apiVersion", kind.type.ApiVersion()},
                     {"time", MetaTime(now)},
                     {"fieldsType", "FieldsV1"},
                     {"fieldsV1", std::move(fields)}});
}

}  // namespace

absl::StatusOr<Json> MergeApply(const Kind& kind, const Json* current, const Json& applied,
                                const ApplyOptions& options, Time now) {
  if (options.field_manager.empty()) return BadRequest("apply needs a field manager");
  const Json wanted = OwnablePart(kind, applied);
  Json fields = FieldsOf(wanted);
  Json entries = ManagedFields(current);
  Json result = current == nullptr ? applied : *current;
  if (current != nullptr) {
    RM_RETURN_IF_ERROR(Contest(kind, *current, wanted, fields, options, entries));
    MergeApplied(result, wanted);
    Json before = Json::object();
    Json kept = fields;
    for (const Json& entry : entries) {
      if (IsManagedBy(entry, options.field_manager)) {
        before = entry["fieldsV1"];
      } else {
        kept.update(entry["fieldsV1"], /*merge_objects=*/true);
      }
    }
    RemoveFields(result, before, kept);
    if (const std::string version = ResourceVersion(applied); !version.empty()) {
      result["metadata"]["resourceVersion"] = version;
    }
    if (const std::string uid = Uid(applied); !uid.empty()) result["metadata"]["uid"] = uid;
  }
  SetFields(kind, entries, options.field_manager, std::move(fields), now);
  result["metadata"]["managedFields"] = std::move(entries);
  return result;
}

}  // namespace ringmaster::kube::memory
