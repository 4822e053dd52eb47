// Sets of fields as server-side apply records them (metadata.managedFields, FieldsV1).
//
// A set is a JSON tree whose steps are "f:name" for a field and "k:{"name":"main"}" for the item of
// a list that is keyed; a leaf is {}. An item that is itself owned, not only some of its fields,
// has the step ".". Lists are keyed as the API declares them (containers, volumes and env by name,
// ports by port and protocol, volumeMounts by mountPath, conditions by type, ownerReferences by
// uid); all others are atomic: one leaf.
//
// Pure functions over JSON values.
#ifndef RINGMASTER_OPERATOR_KUBE_MEMORY_FIELD_SET_H_
#define RINGMASTER_OPERATOR_KUBE_MEMORY_FIELD_SET_H_

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "operator/kube/types.h"

namespace ringmaster::kube::memory {

// The fields that `value` sets. `field` is the name of the field that holds it, which decides how a
// list is keyed.
Json FieldsOf(const Json& value, const std::string& field = "");

// Merges `applied` into `target`: objects field by field, keyed lists item by item, everything else
// replaced.
void MergeApplied(Json& target, const Json& applied, const std::string& field = "");

using FieldSteps = std::vector<std::string>;

// The fields that are in both sets and have different values in `current` and `applied`.
std::vector<FieldSteps> Disagreements(const Json& mine, const Json& theirs, const Json& current,
                                      const Json& applied);

// Removes from `object` the fields in `dropped` that are not in `kept`, and objects that this
// leaves empty.
void RemoveFields(Json& object, const Json& dropped, const Json& kept);

// Takes one path out of a set.
void EraseSteps(Json& set, const FieldSteps& steps);

// ".spec.template.containers[name="main"].image", for messages.
std::string ToText(const FieldSteps& steps);

}  // namespace ringmaster::kube::memory

#endif  // RINGMASTER_OPERATOR_KUBE_MEMORY_FIELD_SET_H_
