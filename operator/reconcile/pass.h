// One pass of reconcile while it is being decided: what is observed, joined up, and the decision as
// it grows. The policies (one file each) are functions on a Pass, called in a fixed order by
// Reconcile; what one writes into `status` the next ones see.
//
// Not thread-safe; lives as long as one call of Reconcile, and so does every pointer in it.
#ifndef RINGMASTER_OPERATOR_RECONCILE_PASS_H_
#define RINGMASTER_OPERATOR_RECONCILE_PASS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operator/reconcile/decision.h"
#include "operator/reconcile/observed.h"
#include "operator/reconcile/pod_facts.h"

namespace ringmaster::reconcile {

namespace v1 = training::v1alpha1;

// One wanted worker: what the status, the API and the rendezvous say of it. `pod` is the pod of the
// incarnation that the status names, and no other; `view` is of that pod's UID.
struct Slot {
  int index = 0;
  const PodFacts* pod = nullptr;       // null: not created yet, or gone
  const WorkerView* view = nullptr;    // null: has never dialled in
  const v1::Member* member = nullptr;  // its place in the round in force, if that pod has one
};

// The pod group that pods which are made in this pass join (scheduling.cc).
struct GroupToJoin {
  std::string name;      // empty: none
  bool awaited = false;  // no pod is to be made before it has been seen
};

class Pass {
 public:
  explicit Pass(const Observed& observed);
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  const Observed& in;
  const v1::TrainingJobSpec& spec;
  const std::string ns;
  const std::string name;
  const std::string uid;
  const std::int64_t generation;
  const Time now;

  v1::TrainingJobStatus status;
  std::vector<PodFacts> pods;  // ours: those with an index and an incarnation; by name
  std::vector<Slot> slots;     // index 0 .. replicas-1

  GroupToJoin group;

  // Whether the native runtime trains, which reports its steps and takes rounds in process.
  bool Native() const { return spec.trainer.has_value(); }

  // The incarnation that the status holds for an index; nothing before its first pod.
  std::optional<int> IncarnationOf(int index) const;
  // Gives the index its next incarnation (0 at first) and forgets its pod. From here on a pod of an
  // earlier incarnation is the operator's to delete, and its end means nothing.
  void NextIncarnation(int index);
  // Whether the status has moved past this pod.
  bool Outdated(const PodFacts& pod) const;
  const WorkerView* ViewOf(const std::string& pod_uid) const;
  // Whether the worker of this pod may still say something that it has not said yet.
  bool MayStillSpeak(const std::string& pod_uid) const;
  // The slot of an index, or null when it is not wanted.
  Slot* SlotOf(int index);

  // Lists that proto3 makes optional; created at first use.
  v1::RestartCounts& restarts();
  v1::LostSeconds& lost();

  void Add(Action action) { actions_.push_back(std::move(action)); }
  void Note(bool warning, const char* reason, std::string message);
  // Of what this pass creates one event tells, if all of it worked; its reason is that of the last
  // to be told.
  void TellCreated(const char* reason, std::string what);
  // Sends to the connected members of the round in force, or to every connected worker of the job.
  void TellMembers(const WorkerCommand& command);
  void TellAll(const WorkerCommand& command);
  // Looks again at `when` at the latest.
  void WakeAt(Time when);
  // Whether something that is missing may be created now; else a later pass will.
  bool MayCreate() { return MayCreateFrom(now); }
  // As MayCreate, and not before `when`.
  bool MayCreateFrom(Time when);
  // Of something that is missing and must wait for something else to appear.
  void LetCreationWait() { creation_waits_ = true; }

  // Ends the job: conditions, completion time, event. What was to be created is not.
  void Succeed(const std::string& message);
  void Fail(const char* reason, const std::string& message);
  bool Finished() const;

  void Announce(Announcement announcement) { announce_ = std::move(announcement); }
  void LetGo(const std::string& pod_uid) { let_go_.push_back(pod_uid); }

  // The decision; the pass is spent afterwards.
  Decision Take();

 private:
  void End(const char* condition, const char* reason, const std::string& message);
  void AdoptIncarnations();
  void RaiseIncarnation(int index, int incarnation);
  void Join();
  void Tell(const std::string& pod_uid, const WorkerCommand& command);

  std::unordered_map<std::string_view, const WorkerView*> views_;  // by pod UID
  struct Created {
    const char* reason;
    std::string what;
  };

  std::vector<Action> actions_;
  std::vector<Created> created_;
  std::optional<Announcement> announce_;
  std::vector<std::string> let_go_;
  std::optional<Time> wake_;
  bool creation_waits_ = false;
};

// Seconds as the status counts them.
double Seconds(Duration duration);

}  // namespace ringmaster::reconcile

#endif  // RINGMASTER_OPERATOR_RECONCILE_PASS_H_
