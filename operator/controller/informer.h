// A local copy of all objects of one kind, kept current by list and watch.
//
// It lists, then watches from there with bookmarks; a watch that ends is resumed from the last
// resourceVersion seen; one that expired (kOutOfRange) is replaced by a new list, whose differences
// reach the handlers as changes. Readers see the copy, which runs behind the server by a moment:
// never decide from it that something may be created (names and preconditions must guard that).
//
//   Informer pods(client, kube::kPod, {.ns = "default"});
//   pods.AddIndex("job", IndexByLabel(contract::kLabelJob));
//   pods.AddHandler(EnqueueByLabel(queue, contract::kLabelJob));
//   pods.Start();                                     // a thread of its own; or call Pump in a
//   test for (const ObjectPtr& pod : pods.ByIndex("job", "digits")) ...
//
// Thread safety: configure (AddIndex, AddHandler) before Start or the first Pump; then every reader
// may be called from any thread. Handlers run on the informer's thread, one at a time, without a
// lock held: they may read the informer.
#ifndef RINGMASTER_OPERATOR_CONTROLLER_INFORMER_H_
#define RINGMASTER_OPERATOR_CONTROLLER_INFORMER_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"
#include "operator/controller/kept_object.h"
#include "operator/controller/streak.h"
#include "operator/controller/work_queue.h"
#include "operator/kube/client.h"

namespace ringmaster::controller {

// What an object is found by: every value under which ByIndex shall give it. Must be a pure
// function.
using IndexFunction = std::function<std::vector<std::string>(const kube::Json& object)>;

// A change: `before` is null when the object appeared, `after` when it went. After a missed
// deletion (a re-list) `before` is the last state known.
using Handler = std::function<void(const ObjectPtr& before, const ObjectPtr& after)>;

class Informer {
 public:
  struct Options {
    std::string ns;              // "" for all namespaces
    std::string label_selector;  // kube/selector.h
    // Objects per list call. A page is decoded as a whole, which takes ten times its length.
    std::int64_t page = 100;
    Backoff backoff{std::chrono::milliseconds(100),
                    std::chrono::seconds(30)};  // after a failed list or watch
    // A kind that the server may not serve: there are no such objects then, and it is asked again,
    // soon at first, then more and more seldom, and at least this often. Zero: the server must
    // serve it.
    Duration ask_again = Duration::zero();
    // A kind that was served must be unknown several times in a row, over at least this time,
    // before its objects are taken for gone.
    Duration sure_after = std::chrono::seconds(5);
    const Clock* clock = &SystemClock();  // must outlive the informer
    Trim trim;  // keeps the copy small (kept_object.h); empty: objects as the client gives them
  };

  // `client` must outlive the informer.
  Informer(kube::Client& client, const kube::ResourceType& type, Options options);
  ~Informer();  // Stop
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  void AddIndex(const std::string& name, IndexFunction function);
  void AddHandler(Handler handler);

  // Keeps the copy current from a thread of its own until Stop. Each may be called once.
  void Start();
  void Stop();

  // Brings the copy up to what the server has now, without a thread and without waiting: lists if
  // need be, then takes every event that is there. Returns the number of changes, or the error that
  // stopped it (call again to retry). For tests and programs that drive themselves; not together
  // with Start.
  absl::StatusOr<int> Pump();

  // Whether the first list has been taken in whole and its handlers have run.
  bool HasSynced() const;
  // Waits for that, up to `timeout`. kDeadlineExceeded, or kCancelled after Stop.
  absl::Status WaitForSync(std::chrono::milliseconds timeout);

  ObjectPtr Get(const ObjectKey& key) const;  // null when absent
  std::vector<ObjectPtr> List() const;        // ordered by key
  // The objects that the index gives for this value, ordered by key.
  std::vector<ObjectPtr> ByIndex(std::string_view index, const std::string& value) const;
  std::size_t Size() const;

  // When the last whole list that was taken in was asked for, by the clock of the options: what was
  // stored before and is not in the copy is gone. The clock's beginning before the first list.
  SteadyTime LastListBegan() const;

  // Whether the server knew the kind when it was last asked.
  bool Served() const;

  const kube::ResourceType& type() const { return type_; }

 private:
  using Keys = std::set<ObjectKey>;
  struct Index {
    IndexFunction function;
    std::map<std::string, Keys> entries;
  };

  // The private calls give the number of changes they made; kNothing when no event was there.
  static constexpr int kNothing = -1;

  // One step: a list when one is due, else the next event, for which it waits up to `timeout`.
  absl::StatusOr<int> Advance(std::chrono::milliseconds timeout);
  absl::StatusOr<int> Relist();
  bool IsUnknownKind(const absl::Status& status) const;
  int TakeIn(std::map<ObjectKey, KeptObject> listed);
  void FinishList(bool served, SteadyTime began);
  absl::StatusOr<std::map<ObjectKey, KeptObject>> ListAll(std::string* resource_version);
  absl::Status OpenWatch();
  // After the watch has ended: 0 when a list will mend it at once, else `why`.
  absl::StatusOr<int> EndWatch(const absl::Status& why);
  std::vector<ObjectKey> KeysWithout(const std::map<ObjectKey, KeptObject>& these) const;
  KeptObject Keep(const ObjectPtr& object, ObjectPtr* left = nullptr) const {
    return {object, options_.trim, left};
  }
  static std::vector<ObjectPtr> ReadAll(const std::vector<KeptObject>& kept);
  int Store(const ObjectKey& key, KeptObject kept);
  int Forget(const ObjectKey& key, const ObjectPtr& last);
  void Reindex(const ObjectKey& key, const ObjectPtr& before, const ObjectPtr& after);
  void Run();
  bool Pause(Duration duration);

  kube::Client& client_;
  const kube::ResourceType type_;
  const Options options_;
  std::vector<Handler> handlers_;

  // Used by the thread that pumps, but for Stop, which reaches the stream under stream_mutex_.
  std::string resource_version_;     // empty: a list is due
  std::string opened_version_;       // where the watch that is open began
  SteadyTime opened_at_{};           // when
  bool nothing_since_list_ = false;  // no watch has worked since the last list
  Streak unknown_;                   // lists of a kind that was served
  std::mutex stream_mutex_;
  std::unique_ptr<kube::WatchStream> stream_;
  bool stopped_ = false;  // guarded by stream_mutex_
  std::condition_variable stop_requested_;

  mutable std::mutex mutex_;
  mutable std::condition_variable synced_changed_;
  std::map<ObjectKey, KeptObject> objects_;  // guarded by mutex_, as is all below
  std::map<std::string, Index, std::less<>> indices_;
  bool synced_ = false;
  bool served_ = false;
  SteadyTime list_began_{};
  bool cancelled_ = false;

  std::thread thread_;
};

// Index functions.
IndexFunction IndexByLabel(std::string label);
IndexFunction IndexByOwnerUid();  // the controller's uid

// Handlers that put a key into a queue (which must outlive the informer) for each change.
Handler EnqueueSelf(WorkQueue& queue);
// The controller of the object, if it is of this kind: its name in the object's namespace. Changes
// within what `gather` says at the first one share its pass; each has its own where it is empty.
using Gather = std::function<Duration()>;
Handler EnqueueController(WorkQueue& queue, const kube::ResourceType& owner, Gather gather = {});
// The name that a label holds, in the object's namespace.
Handler EnqueueByLabel(WorkQueue& queue, std::string label);

}  // namespace ringmaster::controller

#endif  // RINGMASTER_OPERATOR_CONTROLLER_INFORMER_H_
