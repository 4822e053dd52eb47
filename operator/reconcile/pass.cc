#include "operator/reconcile/pass.h"

#include <algorithm>
#include <utility>

#include "operator/kube/object.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/worker_pod.h"

namespace ringmaster::reconcile {
namespace {

std::string Metadata(const Observed& in, std::string_view field) {
  return kube::FindString(in.job.metadata, {field});
}

// The status keeps incarnations in the order of their indices.
bool BeforeIndex(const v1::Incarnation& entry, int index) {
  return entry.index < index;
}

}  // namespace

Pass::Pass(const Observed& observed)
    : in(observed),
      spec(observed.job.spec),
      ns(Metadata(observed, "namespace")),
      name(Metadata(observed, "name")),
      uid(Metadata(observed, "uid")),
      generation(kube::FindInt(observed.job.metadata, {"generation"}).value_or(0)),
      now(observed.now),
      status(observed.job.status.value_or(v1::TrainingJobStatus{})) {
  const std::string worker = WorkerContainerName(spec);
  pods.reserve(in.pods.size());
  for (const kube::ObjectPtr& object : in.pods) {
    PodFacts facts = ReadPod(*object, worker);
    if (facts.index >= 0 && facts.incarnation >= 0) pods.push_back(std::move(facts));
  }
  std::sort(pods.begin(), pods.end(), [](const PodFacts& a, const PodFacts& b) {
    return std::pair(a.index, a.incarnation) < std::pair(b.index, b.incarnation);
  });
  AdoptIncarnations();
  Join();
}

// A pod of a later incarnation than the status knows means that the status is an old copy, or was
// wiped. Counting on from the pod keeps its name from being given twice; where the copy is old, the
// status write that follows from this meets a conflict, and nothing is done.
void Pass::AdoptIncarnations() {
  for (const PodFacts& pod : pods) RaiseIncarnation(pod.index, pod.incarnation);
}

void Pass::Join() {
  for (const WorkerView& view : in.workers.workers) views_.emplace(view.pod_uid, &view);
  slots.resize(spec.workers.replicas);
  for (int index = 0; index < spec.workers.replicas; ++index) slots[index].index = index;
  for (const PodFacts& pod : pods) {
    Slot* slot = SlotOf(pod.index);
    if (slot == nullptr || IncarnationOf(pod.index) != pod.incarnation) continue;
    slot->pod = &pod;
    slot->view = ViewOf(pod.uid);
  }
  if (!in.job.status) return;
  std::unordered_map<std::string_view, const v1::Member*> members;
  for (const v1::Member& member : in.job.status->members) members.emplace(member.pod, &member);
  for (Slot& slot : slots) {
    const std::optional<int> incarnation = IncarnationOf(slot.index);
    if (!incarnation) continue;
    const auto found = members.find(PodName(name, slot.index, *incarnation));
    if (found != members.end()) slot.member = found->second;
  }
}

std::optional<int> Pass::IncarnationOf(int index) const {
  const auto& entries = status.incarnations;
  const auto place = std::lower_bound(entries.begin(), entries.end(), index, BeforeIndex);
  if (place == entries.end() || place->index != index) return std::nullopt;
  return place->incarnation;
}

void Pass::RaiseIncarnation(int index, int incarnation) {
  auto& entries = status.incarnations;
  auto place = std::lower_bound(entries.begin(), entries.end(), index, BeforeIndex);
  if (place == entries.end() || place->index != index) {
    place = entries.insert(place, v1::Incarnation{.index = index});
  }
  place->incarnation = std::max(place->incarnation, incarnation);
}

void Pass::NextIncarnation(int index) {
  if (Slot* slot = SlotOf(index)) *slot = Slot{.index = index};
  const std::optional<int> known = IncarnationOf(index);
  RaiseIncarnation(index, known ? *known + 1 : 0);
}

bool Pass::Outdated(const PodFacts& pod) const {
  return pod.incarnation < IncarnationOf(pod.index).value_or(0);
}

const WorkerView* Pass::ViewOf(const std::string& pod_uid) const {
  const auto found = views_.find(pod_uid);
  return found == views_.end() ? nullptr : found->second;
}

bool Pass::MayStillSpeak(const std::string& pod_uid) const {
  const auto pod = std::find_if(pods.begin(), pods.end(),
                                [&](const PodFacts& each) { return each.uid == pod_uid; });
  if (pod == pods.end() || pod->Terminal()) return false;
  const WorkerView* view = ViewOf(pod_uid);
  return view == nullptr || !view->exited;
}

Slot* Pass::SlotOf(int index) {
  return index >= 0 && index < static_cast<int>(slots.size()) ? &slots[index] : nullptr;
}

v1::RestartCounts& Pass::restarts() {
  if (!status.restarts) status.restarts.emplace();
  return *status.restarts;
}

v1::LostSeconds& Pass::lost() {
  if (!status.lost_seconds) status.lost_seconds.emplace();
  return *status.lost_seconds;
}

void Pass::Note(bool warning, const char* reason, std::string message) {
  Add(RecordEvent{.warning = warning, .reason = reason, .message = std::move(message)});
}

void Pass::TellCreated(const char* reason, std::string what) {
  created_.push_back({reason, std::move(what)});
}

void Pass::Tell(const std::string& pod_uid, const WorkerCommand& command) {
  const WorkerView* view = ViewOf(pod_uid);
  if (view != nullptr && view->connected) Add(SendCommand{pod_uid, command});
}

void Pass::TellMembers(const WorkerCommand& command) {
  for (const v1::Member& member : status.members) Tell(member.pod_uid, command);
}

void Pass::TellAll(const WorkerCommand& command) {
  for (const PodFacts& pod : pods) Tell(pod.uid, command);
}

void Pass::WakeAt(Time when) {
  if (!wake_ || when < *wake_) wake_ = when;
}

bool Pass::MayCreateFrom(Time when) {
  const Time from = std::max(when, now + in.creation_held);
  if (from <= now) return true;
  WakeAt(from);
  creation_waits_ = true;
  return false;
}

bool Pass::Finished() const {
  return IsFinished(status);
}

void Pass::Succeed(const std::string& message) {
  End(kConditionSucceeded, kReasonCompleted, message);
  Note(false, kReasonCompleted, message);
}

void Pass::Fail(const char* reason, const std::string& message) {
  End(kConditionFailed, reason, message);
  Note(true, reason, message);
}

void Pass::End(const char* condition, const char* reason, const std::string& message) {
  std::erase_if(actions_, [](const Action& action) {
    return std::holds_alternative<CreatePod>(action) ||
           std::holds_alternative<CreateService>(action) ||
           std::holds_alternative<CreatePodGroup>(action);
  });
  created_.clear();
  announce_.reset();
  RemoveCondition(status, kConditionDraining);
  RemoveCondition(status, kConditionResizing);
  SetCondition(*this, kConditionTraining, false, reason, "The job has ended.");
  SetCondition(*this, kConditionPodsReady, false, reason, "The job has ended.");
  SetCondition(*this, condition, true, reason, message);
  status.completion_time = now;
}

Decision Pass::Take() {
  if (!created_.empty()) {
    std::string text = "Created " + created_.front().what;
    for (std::size_t i = 1; i < created_.size(); ++i) text += ", and " + created_[i].what;
    Add(RecordEvent{
        .tells_of_writes = true, .reason = created_.back().reason, .message = text + "."});
  }
  Decision decision{.actions = std::move(actions_),
                    .status = std::move(status),
                    .creation_waits = creation_waits_,
                    .let_go = std::move(let_go_),
                    .announce = std::move(announce_),
                    .result = controller::Done{}};
  if (wake_) {
    // Never in the past: a policy that wants another look at once gets the shortest wait.
    const Duration wait = std::max(*wake_ - now, Duration(std::chrono::milliseconds(1)));
    decision.result = controller::RequeueAfter{wait};
  }
  return decision;
}

double Seconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

}  // namespace ringmaster::reconcile
