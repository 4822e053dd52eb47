// The rest of lists that were asked for in pages. All pages of a list show the moment of its first
// one, so the objects are held (they are shared, not copied) until the list is forgotten: the
// oldest when there are too many. Not thread-safe; the store serialises.
#ifndef RINGMASTER_OPERATOR_KUBE_MEMORY_LIST_PAGES_H_
#define RINGMASTER_OPERATOR_KUBE_MEMORY_LIST_PAGES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/kube/client.h"

namespace ringmaster::kube::memory {

class ListPages {
 public:
  // The first page of `all`; `limit` of 0 or less is no limit.
  ObjectList First(std::vector<ObjectPtr> all, std::string resource_version, std::int64_t limit);
  // The page that a token stands for. Expired when it is unknown or forgotten.
  absl::StatusOr<ObjectList> Continue(const std::string& token, std::int64_t limit);
  void Forget() { lists_.clear(); }

 private:
  struct Snapshot {
    std::vector<ObjectPtr> items;
    std::string resource_version;
  };

  static ObjectList Cut(const Snapshot& snapshot, std::uint64_t id, std::size_t from,
                        std::int64_t limit);

  std::map<std::uint64_t, Snapshot> lists_;  // by age
  std::uint64_t next_id_ = 1;
};

}  // namespace ringmaster::kube::memory

#endif  // RINGMASTER_OPERATOR_KUBE_MEMORY_LIST_PAGES_H_
