#include "operator/kube/object.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ringmaster::kube {
namespace {

const Json* FindList(const Json& object, FieldPath path) {
  const Json* found = Find(object, path);
  return found != nullptr && found->is_array() ? found : nullptr;
}

std::optional<std::string> FindEntry(const Json& object, std::string_view map,
                                     std::string_view key) {
  const Json* found = Find(object, {"metadata", map, key});
  if (found == nullptr || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

void SetEntry(Json& object, const char* map, std::string_view key, std::string_view value) {
  object["metadata"][map][std::string(key)] = std::string(value);
}

}  // namespace

const Json* Find(const Json& object, FieldPath path) {
  const Json* at = &object;
  for (std::string_view field : path) {
    if (!at->is_object()) return nullptr;
    const auto it = at->find(field);
    if (it == at->end()) return nullptr;
    at = &*it;
  }
  return at->is_null() ? nullptr : at;
}

std::string FindString(const Json& object, FieldPath path) {
  const Json* found = Find(object, path);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<std::int64_t> FindInt(const Json& object, FieldPath path) {
  const Json* found = Find(object, path);
  if (found == nullptr || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

bool FindBool(const Json& object, FieldPath path) {
  const Json* found = Find(object, path);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

std::string Name(const Json& object) {
  return FindString(object, {"metadata", "name"});
}
std::string Namespace(const Json& object) {
  return FindString(object, {"metadata", "namespace"});
}
std::string Uid(const Json& object) {
  return FindString(object, {"metadata", "uid"});
}

std::string ResourceVersion(const Json& object) {
  return FindString(object, {"metadata", "resourceVersion"});
}

std::int64_t Generation(const Json& object) {
  return FindInt(object, {"metadata", "generation"}).value_or(0);
}

ObjectKey KeyOf(const Json& object) {
  return {Namespace(object), Name(object)};
}

bool IsDeleting(const Json& object) {
  return Find(object, {"metadata", "deletionTimestamp"}) != nullptr;
}

bool HasFinalizer(const Json& object, std::string_view finalizer) {
  const Json* list = FindList(object, {"metadata", "finalizers"});
  return list != nullptr && std::find(list->begin(), list->end(), finalizer) != list->end();
}

std::optional<std::string> Label(const Json& object, std::string_view key) {
  return FindEntry(object, "labels", key);
}

std::map<std::string, std::string> Labels(const Json& object) {
  std::map<std::string, std::string> labels;
  const Json* found = Find(object, {"metadata", "labels"});
  if (found == nullptr || !found->is_object()) return labels;
  for (const auto& [key, value] : found->items()) {
    if (value.is_string()) labels[key] = value.get<std::string>();
  }
  return labels;
}

void SetLabel(Json& object, std::string_view key, std::string_view value) {
  SetEntry(object, "labels", key, value);
}

std::optional<std::string> Annotation(const Json& object, std::string_view key) {
  return FindEntry(object, "annotations", key);
}

void SetAnnotation(Json& object, std::string_view key, std::string_view value) {
  SetEntry(object, "annotations", key, value);
}

Json NewObject(const ResourceType& type, const ObjectKey& key) {
  Json object = {{"apiVersion", type.ApiVersion()},
                 {"kind", std::string(type.kind)},
                 {"metadata", {{"name", key.name}}}};
  if (type.namespaced) object["metadata"]["namespace"] = key.ns;
  return object;
}

Json OwnerReference(const ResourceType& owner_type, const Json& owner, bool controller) {
  Json reference = {{"apiVersion", owner_type.ApiVersion()},
                    {"kind", std::string(owner_type.kind)},
                    {"name", Name(owner)},
                    {"uid", Uid(owner)}};
  if (controller) {
    reference["controller"] = true;
    reference["blockOwnerDeletion"] = true;
  }
  return reference;
}

void AddOwnerReference(Json& object, const Json& reference) {
  Json& references = object["metadata"]["ownerReferences"];
  if (references.is_null()) references = Json::array();
  references.push_back(reference);
}

const Json* ControllerOf(const Json& object) {
  const Json* references = FindList(object, {"metadata", "ownerReferences"});
  if (references == nullptr) return nullptr;
  for (const Json& reference : *references) {
    if (FindBool(reference, {"controller"})) return &reference;
  }
  return nullptr;
}

bool IsOwnedBy(const Json& object, std::string_view owner_uid) {
  const Json* references = FindList(object, {"metadata", "ownerReferences"});
  return references != nullptr &&
         std::any_of(references->begin(), references->end(), [&](const Json& reference) {
           return FindString(reference, {"uid"}) == owner_uid;
         });
}

void MergePatch(Json& target, const Json& patch) {
  target.merge_patch(patch);
}

Json MergeDiff(const Json& from, const Json& to) {
  Json diff = Json::object();
  for (const auto& [key, value] : from.items()) {
    if (!value.is_null() && (!to.contains(key) || to[key].is_null())) diff[key] = nullptr;
  }
  for (const auto& [key, value] : to.items()) {
    if (value.is_null()) continue;
    const auto before = from.find(key);
    if (before == from.end()) {
      if (!value.is_array() || !value.empty()) diff[key] = value;
    } else if (before->is_object() && value.is_object()) {
      Json inner = MergeDiff(*before, value);
      if (!inner.empty()) diff[key] = std::move(inner);
    } else if (*before != value) {
      diff[key] = value;
    }
  }
  return diff;
}

std::string MetaTime(Time time) {
  return FormatTime(std::chrono::floor<std::chrono::seconds>(time));
}

std::string MicroTime(Time time) {
  std::string text = MetaTime(time);
  text.pop_back();
  const auto micros = (time - std::chrono::floor<std::chrono::seconds>(time)).count();
  return fmt::format("{}.{:06}Z", text, micros);
}

std::optional<Time> FindTime(const Json& object, FieldPath path) {
  const auto time = ParseTime(FindString(object, path));
  if (!time.ok()) return std::nullopt;
  return *time;
}

}  // namespace ringmaster::kube
