#include "operator/kube/memory/garbage_collection.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "common/log.h"
#include "common/status.h"
#include "operator/kube/memory/store_core.h"
#include "operator/kube/memory/write_rules.h"
#include "operator/kube/object.h"

namespace ringmaster::kube::memory {
namespace {

bool WaitsForDependents(const Json& object) {
  return IsDeleting(object) && HasFinalizer(object, kForegroundFinalizer);
}

Json References(const Json& object) {
  const Json* references = Find(object, {"metadata", "ownerReferences"});
  return references == nullptr ? Json() : *references;
}

// Whether the object's reference to this owner holds up the owner's deletion.
bool Blocks(const Json& object, const std::string& owner_uid) {
  const Json* references = Find(object, {"metadata", "ownerReferences"});
  return references != nullptr &&
         std::any_of(references->begin(), references->end(), [&](const Json& reference) {
           return FindString(reference, {"uid"}) == owner_uid &&
                  FindBool(reference, {"blockOwnerDeletion"});
         });
}

Json WithoutFinalizer(Json object, std::string_view finalizer) {
  Json& list = object["metadata"]["finalizers"];
  list.erase(std::remove(list.begin(), list.end(), finalizer), list.end());
  if (list.empty()) object["metadata"].erase("finalizers");
  return object;
}

template <typename Keep>
Json KeepOwners(Json object, Keep keep) {
  Json& list = object["metadata"]["ownerReferences"];
  list.erase(
      std::remove_if(list.begin(), list.end(),
                     [&](const Json& reference) { return !keep(FindString(reference, {"uid"})); }),
      list.end());
  if (list.empty()) object["metadata"].erase("ownerReferences");
  return object;
}

}  // namespace

void StoreCore::NoteChange(const Place& place, const ObjectPtr& before, const ObjectPtr& after) {
  const Json none;
  const Json& was = before == nullptr ? none : *before;
  const Json& is = after == nullptr ? none : *after;
  if (References(was) != References(is)) {
    // An owner that waits for its dependents may wait no longer.
    for (const std::string& uid : OwnerUids(was)) {
      if (const Place* owner = table_.FindByUid(uid)) suspects_.push_back(*owner);
    }
    if (after != nullptr) suspects_.push_back(place);
  } else if (WaitsForDependents(is)) {
    suspects_.push_back(place);
  }
  if (after == nullptr) {
    for (Place& dependent : table_.DependentsOf(Uid(was)))
      suspects_.push_back(std::move(dependent));
  }
}

void StoreCore::CollectGarbage() {
  while (!suspects_.empty()) {
    const Place place = suspects_.front();
    if (absl::Status status = CollectOne(place); !status.ok()) {
      // Only the journal can fail here. The suspect stays for the next write, and a reopened store
      // looks again at all.
      log::Warning("garbage collection is held up",
                   {{"object", place.key.ToString()}, {"error", status}});
      return;
    }
    suspects_.pop_front();
  }
}

absl::Status StoreCore::CollectOne(const Place& place) {
  const ObjectPtr object = table_.Find(place);
  if (object == nullptr) return absl::OkStatus();
  if (WaitsForDependents(*object)) RM_RETURN_IF_ERROR(FinishForeground(place, *object));
  const ObjectPtr still = table_.Find(place);
  return still == nullptr || OwnerUids(*still).empty() ? absl::OkStatus()
                                                       : CollectUnowned(place, *still);
}

absl::Status StoreCore::FinishForeground(const Place& place, const Json& object) {
  bool blocked = false;
  for (const Place& dependent : table_.DependentsOf(Uid(object))) {
    const ObjectPtr found = table_.Find(dependent);
    if (!IsDeleting(*found)) {
      RM_RETURN_IF_ERROR(DeleteOne(dependent, {.propagation = Propagation::kForeground}));
    }
    const ObjectPtr left = table_.Find(dependent);
    blocked |= left != nullptr && Blocks(*left, Uid(object));
  }
  if (blocked) return absl::OkStatus();
  Json next = WithoutFinalizer(object, kForegroundFinalizer);
  if (IsReleased(next)) return Remove(place, std::move(next));
  return Write(place, std::move(next)).status();
}

absl::Status StoreCore::CollectUnowned(const Place& place, const Json& object) {
  const auto present = [&](const std::string& uid) {
    const Place* owner = table_.FindByUid(uid);
    return owner != nullptr && (owner->key.ns.empty() || owner->key.ns == place.key.ns);
  };
  const std::vector<std::string> owners = OwnerUids(object);
  const auto left = std::count_if(owners.begin(), owners.end(), present);
  if (left == static_cast<std::ptrdiff_t>(owners.size())) return absl::OkStatus();
  if (left > 0) return Write(place, KeepOwners(object, present)).status();
  return IsDeleting(object) ? absl::OkStatus() : DeleteOne(place, {});
}

absl::Status StoreCore::Orphan(const std::string& owner_uid) {
  for (const Place& dependent : table_.DependentsOf(owner_uid)) {
    const ObjectPtr object = table_.Find(dependent);
    RM_RETURN_IF_ERROR(
        Write(dependent,
              KeepOwners(*object, [&](const std::string& uid) { return uid != owner_uid; }))
            .status());
  }
  return absl::OkStatus();
}

}  // namespace ringmaster::kube::memory
