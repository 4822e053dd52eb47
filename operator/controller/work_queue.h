// The queue of keys that want a reconcile pass.
//
// - A key is in it once, however often it was added.
// - A key handed out by Get is not handed out again before Done; added meanwhile, it comes back
// after Done. So passes
//   of one key run in turn (one strand per key) and no change is missed.
// - Keys come out in the order in which they became ready.
// - AddAfter makes a key ready later; AddRateLimited after a back-off that doubles with each
// failure until Forget.
//   Of several delays for one key the earliest counts.
//
// (The semantics of client-go's util/workqueue: dedup, delaying and rate-limiting queue in one.)
//
// Thread-safe. Time comes from the injected clock. Under a FakeClock use TryGet, which never waits.
#ifndef RINGMASTER_OPERATOR_CONTROLLER_WORK_QUEUE_H_
#define RINGMASTER_OPERATOR_CONTROLLER_WORK_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "common/clock.h"
#include "operator/kube/types.h"

namespace ringmaster::controller {

using kube::ObjectKey;

struct Backoff {
  Duration initial = std::chrono::milliseconds(10);
  Duration maximum = std::chrono::minutes(1);
};

class WorkQueue {
 public:
  // `clock` must outlive the queue.
  explicit WorkQueue(const Clock& clock, Backoff backoff = {});

  void Add(const ObjectKey& key);
  void AddAfter(const ObjectKey& key, Duration delay);  // a delay of zero or less is Add
  void AddRateLimited(const ObjectKey& key);

  // Clears the failure count; a delay that is pending stays.
  void Forget(const ObjectKey& key);
  int Failures(const ObjectKey& key) const;

  // The next ready key, which the caller must give back with Done; nothing when none is ready or
  // after ShutDown.
  std::optional<ObjectKey> TryGet();
  // As TryGet, but waits until a key is ready. Nothing only after ShutDown.
  std::optional<ObjectKey> Get();
  void Done(const ObjectKey& key);

  // Adds are dropped from now on, and Get returns nothing, at once. Idempotent.
  void ShutDown();

  std::size_t Depth() const;  // keys ready now, not those delayed or being worked on
  // When the next delayed key becomes ready, for tests that turn a clock by hand.
  std::optional<SteadyTime> NextDue() const;

 private:
  // All need mutex_.
  void Wake();
  void Await(std::unique_lock<std::mutex>& lock);
  bool PushReady(const ObjectKey& key);
  void AddReady(const ObjectKey& key);
  void AddDelayed(const ObjectKey& key, Duration delay);
  void PromoteDue();
  std::optional<ObjectKey> Pop();

  const Clock& clock_;
  const Backoff backoff_;
  mutable std::mutex mutex_;
  // Of those who wait for a key, one waits until the next delayed one is due. The others sleep on
  // when it is: each key wakes one of them.
  std::condition_variable changed_;
  std::condition_variable due_changed_;  // for that one
  bool shut_down_ = false;               // guarded by mutex_, as is all below
  int sleepers_ = 0;                     // who wait on changed_
  bool one_waits_until_due_ = false;
  std::deque<ObjectKey> ready_;           // in order, no key twice
  std::unordered_set<ObjectKey> dirty_;   // wants a pass: in ready_, or in active_ and added again
  std::unordered_set<ObjectKey> active_;  // handed out
  std::set<std::pair<SteadyTime, ObjectKey>> delayed_;
  std::unordered_map<ObjectKey, SteadyTime> due_;  // the entry of each key in delayed_
  std::unordered_map<ObjectKey, int> failures_;
};

}  // namespace ringmaster::controller

#endif  // RINGMASTER_OPERATOR_CONTROLLER_WORK_QUEUE_H_
