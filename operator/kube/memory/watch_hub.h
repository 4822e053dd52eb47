// The store's memory of what changed, and the watch streams that read it.
//
// For each kind a bounded history of changes in revision order. A stream is a cursor into it:
// publishing wakes the waiting readers and never blocks on a slow one; a reader that falls behind
// the history is told to list again (kOutOfRange), as the API server's watch cache does.
//
// Thread-safe. Streams hold the hub alive, so they may outlive the store; after Close they answer
// kUnavailable.
#ifndef RINGMASTER_OPERATOR_KUBE_MEMORY_WATCH_HUB_H_
#define RINGMASTER_OPERATOR_KUBE_MEMORY_WATCH_HUB_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "operator/kube/client.h"
#include "operator/kube/selector.h"

namespace ringmaster::kube::memory {

using Revision = std::uint64_t;

struct Change {
  Revision revision = 0;
  ObjectPtr
      object;  // the new state; for a removal the last one, its resourceVersion that of the removal
  ObjectPtr previous;  // the state before; null for a creation
  bool removed = false;
};

class WatchHub : public std::enable_shared_from_this<WatchHub> {
 public:
  struct Options {
    // Changes remembered per kind. Fewer means more re-lists by slow watchers, more means memory.
    std::size_t history = 4096;
    // A stream that asked for bookmarks and has nothing to deliver gets one once the store has
    // moved on by this many revisions since the last revision it was told.
    Revision bookmark_every = 100;
  };

  struct Filter {
    std::string kind;  // ResourceType::Qualified
    std::string ns;    // "" for all
    LabelSelector selector;
    bool bookmarks = true;
    ResourceType type;  // for the bookmark's apiVersion and kind
  };

  // Nothing before `start` is remembered.
  WatchHub(const Options& options, Revision start);

  // Adds a change, whose revision must be above all before it, and wakes the readers.
  void Publish(const std::string& kind, Change change);

  // A stream of the changes after `from`. kOutOfRange when some of these are forgotten, or when
  // `from` is still to come (it belongs to another life of the store).
  absl::StatusOr<std::unique_ptr<WatchStream>> Open(Filter filter, Revision from);

  // Forgets the whole history: every open stream that is behind, and every resume from before now,
  // expires.
  void Forget();

  // The store is going: all streams end with kUnavailable.
  void Close();

 private:
  friend class HubStream;

  struct History {
    std::deque<Change> changes;
    Revision forgotten = 0;  // changes up to here may be missing
  };

  History& HistoryOf(const std::string& kind);  // needs mutex_

  const Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, History> histories_;  // guarded by mutex_, as is all below
  Revision start_;
  Revision latest_;
  bool closed_ = false;
};

}  // namespace ringmaster::kube::memory

#endif  // RINGMASTER_OPERATOR_KUBE_MEMORY_WATCH_HUB_H_
