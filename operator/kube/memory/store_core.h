// The store's state and its three ways to change it: Put, Remove, and the deletions that follow
// from these.
//
// Every change takes the next revision, is journaled, then applied, then told to the watchers: in
// that order, so that what a watcher has seen survives a crash, and a change that cannot be
// journaled has not happened.
//
// Not thread-safe; MemoryStore holds its lock around every call.
#ifndef RINGMASTER_OPERATOR_KUBE_MEMORY_STORE_CORE_H_
#define RINGMASTER_OPERATOR_KUBE_MEMORY_STORE_CORE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "operator/kube/client.h"
#include "operator/kube/memory/journal.h"
#include "operator/kube/memory/kind.h"
#include "operator/kube/memory/object_table.h"
#include "operator/kube/memory/watch_hub.h"

namespace ringmaster::kube::memory {

class StoreCore {
 public:
  struct Options {
    const Clock* clock = nullptr;
    std::vector<Kind> kinds;
    std::string journal_path;  // empty: nothing is kept
    Durability durability = Durability::kProcess;
    std::int64_t compact_after = 0;
    WatchHub::Options watch;
  };

  explicit StoreCore(Options options);
  ~StoreCore();  // closes the hub

  // Reads the journal and finishes the deletions that a crash interrupted. Call once, before
  // anything else.
  absl::Status Load(std::string* torn);

  // Null when the store does not serve this type.
  Kind* KindOf(const ResourceType& type);

  const ObjectTable& table() const { return table_; }
  WatchHub& hub() { return *hub_; }
  Revision revision() const { return revision_; }
  Time Now() const { return options_.clock->Now(); }

  // Stores the object as the place's new state under the next revision; one equal to what is there
  // makes no revision. A deleting object that nothing holds any more is removed instead, and its
  // last state returned. Afterwards garbage is collected.
  absl::StatusOr<ObjectPtr> Put(const Place& place, Json object);

  // Deletes as Client::Delete; then garbage is collected.
  absl::Status Delete(const Place& place, const DeleteOptions& options);

  // Rewrites the journal to hold only the present.
  absl::Status Compact();

 private:
  absl::Status Replay(const Json& write);
  absl::Status WriteJournal(const Json& write);
  void CompactIfMostlyPast();

  absl::StatusOr<ObjectPtr> Write(const Place& place, Json object);
  absl::Status Remove(const Place& place, Json last_state);
  absl::Status DeleteOne(const Place& place, const DeleteOptions& options);
  absl::Status Orphan(const std::string& owner_uid);
  void RemoveExpired(const Kind* kind);

  // Garbage collection (garbage_collection.cc).
  void NoteChange(const Place& place, const ObjectPtr& before, const ObjectPtr& after);
  void CollectGarbage();
  absl::Status CollectOne(const Place& place);
  absl::Status FinishForeground(const Place& place, const Json& object);
  absl::Status CollectUnowned(const Place& place, const Json& object);

  const Options options_;
  std::vector<Kind>
      kinds_;  // never resized: Places point into it, and its order is the order of deletion
  ObjectTable table_;
  Revision revision_ = 0;
  Time expired_until_{};  // when RemoveExpired looked last
  std::shared_ptr<WatchHub> hub_;
  std::unique_ptr<Journal> journal_;
  std::deque<Place> suspects_;  // objects whose owners, or whose dependents, changed
};

}  // namespace ringmaster::kube::memory

#endif  // RINGMASTER_OPERATOR_KUBE_MEMORY_STORE_CORE_H_
