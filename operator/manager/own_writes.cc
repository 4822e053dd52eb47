#include "operator/manager/own_writes.h"

#include <utility>

#include "operator/kube/object.h"

namespace ringmaster::manager {

void OwnWrites::Record(const kube::ObjectKey& key, const std::string& before,
                       kube::ObjectPtr after) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  if (!entry.overwritten.empty() && kube::ResourceVersion(*entry.latest) != before) {
    entry.overwritten.clear();
  }
  entry.overwritten.insert(before);
  entry.latest = std::move(after);
}

kube::ObjectPtr OwnWrites::Newest(const kube::ObjectKey& key, kube::ObjectPtr cached) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return cached;
  if (cached != nullptr && found->second.overwritten.contains(kube::ResourceVersion(*cached))) {
    return found->second.latest;
  }
  entries_.erase(found);
  return cached;
}

}  // namespace ringmaster::manager
