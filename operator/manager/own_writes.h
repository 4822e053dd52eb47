// What this process has written since the cache last moved.
//
// An informer's copy runs behind the server, so right after a status write it still shows the
// object from before. Deciding from that would repeat the decision and then fail with a conflict.
// OwnWrites replaces such a copy by what the write returned, until the cache shows something else
// than what was overwritten. It needs no order of resourceVersions, only equality, which is all
// that the API promises. With a trim it keeps as little of an object as the cache does: after a
// change that concerns all jobs it has one of each.
//
// Thread-safe.
#ifndef RINGMASTER_OPERATOR_MANAGER_OWN_WRITES_H_
#define RINGMASTER_OPERATOR_MANAGER_OWN_WRITES_H_

#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "operator/controller/kept_object.h"
#include "operator/kube/types.h"

namespace ringmaster::manager {

class OwnWrites {
 public:
  explicit OwnWrites(controller::Trim trim = {}) : trim_(std::move(trim)) {}

  // `after` was stored in place of the object whose resourceVersion was `before`.
  void Record(const kube::ObjectKey& key, const std::string& before, const kube::ObjectPtr& after);

  // The newer of the cached object and what was written over it. Null stays null and is forgotten.
  kube::ObjectPtr Newest(const kube::ObjectKey& key, kube::ObjectPtr cached);

 private:
  struct Entry {
    std::set<std::string> overwritten;  // resourceVersions that `latest` has replaced
    std::string version;                // of `latest`
    controller::KeptObject latest;
  };

  const controller::Trim trim_;
  std::mutex mutex_;
  std::unordered_map<kube::ObjectKey, Entry> entries_;  // guarded by mutex_
};

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_OWN_WRITES_H_
