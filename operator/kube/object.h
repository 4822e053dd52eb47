// Reading and building unstructured objects without stumbling over what is absent.
//
// Every reader takes any JSON value and answers "empty" for a field that is missing or of another
// type; none throws. The pointers that Find and its like return live as long as the object does and
// as it is not changed.
#ifndef RINGMASTER_OPERATOR_KUBE_OBJECT_H_
#define RINGMASTER_OPERATOR_KUBE_OBJECT_H_

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "common/clock.h"
#include "operator/kube/types.h"

namespace ringmaster::kube {

using FieldPath = std::initializer_list<std::string_view>;

// The value at a path of field names, {"status", "phase"}, or null when any step is missing or
// null.
const Json* Find(const Json& object, FieldPath path);
std::string FindString(const Json& object, FieldPath path);
std::optional<std::int64_t> FindInt(const Json& object, FieldPath path);
bool FindBool(const Json& object, FieldPath path);

std::string Name(const Json& object);
std::string Namespace(const Json& object);
std::string Uid(const Json& object);
std::string ResourceVersion(const Json& object);
std::int64_t Generation(const Json& object);  // 0 when absent
ObjectKey KeyOf(const Json& object);

// Whether metadata.deletionTimestamp is set: the object is on its way out.
bool IsDeleting(const Json& object);
bool HasFinalizer(const Json& object, std::string_view finalizer);

std::optional<std::string> Label(const Json& object, std::string_view key);
std::map<std::string, std::string> Labels(const Json& object);
void SetLabel(Json& object, std::string_view key, std::string_view value);
std::optional<std::string> Annotation(const Json& object, std::string_view key);
void SetAnnotation(Json& object, std::string_view key, std::string_view value);

// {"apiVersion": ..., "kind": ..., "metadata": {"name": ..., "namespace": ...}}
Json NewObject(const ResourceType& type, const ObjectKey& key);

// An owner reference to `owner`, which must have come from the server (it needs a uid). As a
// controller reference it also has blockOwnerDeletion, and an object may hold at most one.
Json OwnerReference(const ResourceType& owner_type, const Json& owner, bool controller = true);
void AddOwnerReference(Json& object, const Json& reference);
// The reference whose `controller` is true, or null.
const Json* ControllerOf(const Json& object);
bool IsOwnedBy(const Json& object, std::string_view owner_uid);

// RFC 7396. MergePatch changes `target` in place. MergeDiff is the smallest patch with
// MergePatch(from, diff) == to; an empty object when nothing differs. A null inside `to` cannot be
// expressed and reads as absent, and so does an empty list that `from` lacks: Kubernetes does not
// tell them apart, and an object that an older version wrote is not to be written again for a list
// that is new.
void MergePatch(Json& target, const Json& patch);
Json MergeDiff(const Json& from, const Json& to);

// Times as the API's types want them: metav1.Time in whole seconds ("2026-01-31T12:00:00Z"),
// MicroTime, of leases and events, with exactly six digits behind the point.
std::string MetaTime(Time time);
std::string MicroTime(Time time);
// The time at a path, in either form; nothing when absent or malformed.
std::optional<Time> FindTime(const Json& object, FieldPath path);

}  // namespace ringmaster::kube

#endif  // RINGMASTER_OPERATOR_KUBE_OBJECT_H_
