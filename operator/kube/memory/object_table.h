// The live objects, with the two indices that garbage collection needs. Not thread-safe; the store
// serialises.
#ifndef RINGMASTER_OPERATOR_KUBE_MEMORY_OBJECT_TABLE_H_
#define RINGMASTER_OPERATOR_KUBE_MEMORY_OBJECT_TABLE_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "operator/kube/memory/kind.h"
#include "operator/kube/types.h"

namespace ringmaster::kube::memory {

// Where an object is: its kind, which the store owns for life, and its key.
struct Place {
  const Kind* kind = nullptr;
  ObjectKey key;

  friend bool operator<(const Place& a, const Place& b) {
    return std::tie(a.kind, a.key) < std::tie(b.kind, b.key);
  }
  friend bool operator==(const Place& a, const Place& b) {
    return a.kind == b.kind && a.key == b.key;
  }
};

class ObjectTable {
 public:
  ObjectPtr Find(const Place& place) const;  // null when absent
  const Place* FindByUid(
      const std::string& uid) const;  // null when absent; valid until the next change
  std::vector<Place> DependentsOf(
      const std::string& uid) const;  // whose ownerReferences name this uid

  void Put(const Place& place, ObjectPtr object);
  void Erase(const Place& place);

  // In key order; all namespaces when `ns` is empty.
  std::vector<ObjectPtr> List(const Kind* kind, std::string_view ns) const;
  void ForEach(const std::function<void(const Place&, const ObjectPtr&)>& visit) const;
  std::size_t size() const { return objects_.size(); }

 private:
  void Unindex(const Place& place, const Json& object);

  std::map<Place, ObjectPtr> objects_;
  std::map<std::string, Place> by_uid_;
  std::map<std::string, std::set<Place>> by_owner_;
};

// The uids in the object's ownerReferences.
std::vector<std::string> OwnerUids(const Json& object);

}  // namespace ringmaster::kube::memory

#endif  // RINGMASTER_OPERATOR_KUBE_MEMORY_OBJECT_TABLE_H_
