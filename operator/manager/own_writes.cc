#include "operator/manager/own_writes.h"

#include "operator/kube/object.h"

namespace ringmaster::manager {

void OwnWrites::Record(const kube::ObjectKey& key, const std::string& before,
                       const kube::ObjectPtr& after) {
  controller::KeptObject latest(after, trim_);
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[key];
  if (entry.version != before) entry.overwritten.clear();
  entry.overwritten.insert(before);
  entry.version = kube::ResourceVersion(*after);
  entry.latest = std::move(latest);
}

kube::ObjectPtr OwnWrites::Newest(const kube::ObjectKey& key, kube::ObjectPtr cached) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return cached;
  if (cached != nullptr && found->second.overwritten.contains(kube::ResourceVersion(*cached))) {
    return found->second.latest.Read();
  }
  entries_.erase(found);
  return cached;
}

}  // namespace ringmaster::manager
