#include "operator/kube/memory/object_table.h"

#include <nlohmann/json.hpp>

#include "operator/kube/object.h"

namespace ringmaster::kube::memory {

std::vector<std::string> OwnerUids(const Json& object) {
  std::vector<std::string> uids;
  const Json* references = kube::Find(object, {"metadata", "ownerReferences"});
  if (references == nullptr || !references->is_array()) return uids;
  for (const Json& reference : *references) uids.push_back(FindString(reference, {"uid"}));
  return uids;
}

ObjectPtr ObjectTable::Find(const Place& place) const {
  const auto it = objects_.find(place);
  return it == objects_.end() ? nullptr : it->second;
}

const Place* ObjectTable::FindByUid(const std::string& uid) const {
  const auto it = by_uid_.find(uid);
  return it == by_uid_.end() ? nullptr : &it->second;
}

std::vector<Place> ObjectTable::DependentsOf(const std::string& uid) const {
  const auto it = by_owner_.find(uid);
  if (it == by_owner_.end()) return {};
  return {it->second.begin(), it->second.end()};
}

void ObjectTable::Put(const Place& place, ObjectPtr object) {
  ObjectPtr& slot = objects_[place];
  if (slot != nullptr) Unindex(place, *slot);
  slot = std::move(object);
  by_uid_[Uid(*slot)] = place;
  for (const std::string& uid : OwnerUids(*slot)) by_owner_[uid].insert(place);
}

void ObjectTable::Erase(const Place& place) {
  const auto it = objects_.find(place);
  if (it == objects_.end()) return;
  Unindex(place, *it->second);
  objects_.erase(it);
}

void ObjectTable::Unindex(const Place& place, const Json& object) {
  by_uid_.erase(Uid(object));
  for (const std::string& uid : OwnerUids(object)) {
    const auto it = by_owner_.find(uid);
    if (it == by_owner_.end()) continue;
    it->second.erase(place);
    if (it->second.empty()) by_owner_.erase(it);
  }
}

std::vector<ObjectPtr> ObjectTable::List(const Kind* kind, std::string_view ns) const {
  std::vector<ObjectPtr> found;
  for (auto it = objects_.lower_bound({kind, {std::string(ns), ""}}); it != objects_.end(); ++it) {
    if (it->first.kind != kind || (!ns.empty() && it->first.key.ns != ns)) break;
    found.push_back(it->second);
  }
  return found;
}

void ObjectTable::ForEach(const std::function<void(const Place&, const ObjectPtr&)>& visit) const {
  for (const auto& [place, object] : objects_) visit(place, object);
}

}  // namespace ringmaster::kube::memory
