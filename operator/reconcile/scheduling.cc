// The job's pod group, where the cluster has a scheduler that knows such things.
//
// A group is of one start of the job: of pods none of which has a predecessor that still runs. It
// keeps its name while any of them is there; a worker that is replaced, or added, joins it. When
// all have gone (the job was suspended, or lost every worker at once) the next pods get a new group
// under a new name, since pods that are still on their way out count as placed in the old one, and
// would let the new pods in one by one.
//
// No pod is made before its group has been seen: some schedulers place a pod whose group they do
// not know as if it had none.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/contract.h"
#include "common/text.h"
#include "operator/kube/object.h"
#include "operator/reconcile/gang.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/worker_pod.h"

namespace ringmaster::reconcile {
namespace {

using kube::Json;

std::string Queue(const Pass& pass) {
  return pass.spec.scheduling.queue.value_or("");
}

std::string PriorityClass(const Pass& pass) {
  if (pass.spec.scheduling.priority_class_name) return *pass.spec.scheduling.priority_class_name;
  const Json& pod = pass.spec.workers.template_;
  return pod.is_object() ? kube::FindString(pod, {"spec", "priorityClassName"}) : "";
}

// How many workers start together; 0: the job has no group. A round is formed when all workers have
// joined, so fewer would hold what they have been given and wait. Volcano's queues are of groups.
int Members(const Pass& pass) {
  if (pass.in.gang == nullptr) return 0;
  const Json& pod = pass.spec.workers.template_;
  if (pod.is_object() && !GroupNamedIn(pod).empty()) return 0;  // the user's own
  if (pass.spec.scheduling.gang) return static_cast<int>(pass.slots.size());
  return pass.in.gang->scheduler == GangScheduler::kVolcano && !Queue(pass).empty() ? 1 : 0;
}

bool AnyPod(const Pass& pass) {
  return std::any_of(pass.slots.begin(), pass.slots.end(),
                     [](const Slot& slot) { return slot.pod != nullptr; });
}

// What the wanted pods that are there have joined; empty for none.
std::string GroupOfPods(const Pass& pass) {
  for (const Slot& slot : pass.slots) {
    if (slot.pod != nullptr && !slot.pod->group.empty()) return slot.pod->group;
  }
  return "";
}

// Worker 0 has another incarnation at each start of the job.
std::string NewGroupName(const Pass& pass) {
  return fmt::format("{}-gang-{}", pass.name, pass.IncarnationOf(0).value_or(0));
}

const Json* FindGroup(const Pass& pass, const std::string& name) {
  for (const kube::ObjectPtr& group : pass.in.pod_groups) {
    if (kube::Name(*group) == name) return group.get();
  }
  return nullptr;
}

void DeleteGroup(Pass& pass, const Json& group) {
  if (kube::IsDeleting(group)) return;
  pass.Add(DeletePodGroup{pass.in.gang->type, kube::Name(group), kube::Uid(group)});
}

void DeleteOthers(Pass& pass, const std::string& name) {
  for (const kube::ObjectPtr& group : pass.in.pod_groups) {
    if (kube::Name(*group) != name) DeleteGroup(pass, *group);
  }
}

void Create(Pass& pass, const std::string& name, int members) {
  if (!pass.MayCreate()) return;
  Json group = kube::NewObject(pass.in.gang->type, {pass.ns, name});
  group["metadata"]["labels"] = {{contract::kLabelJob, pass.name},
                                 {contract::kLabelManagedBy, kManagedBy}};
  kube::AddOwnerReference(group, OwnerReferenceOf(pass));
  group["spec"] = PodGroupSpec(*pass.in.gang, members, Queue(pass), PriorityClass(pass));
  pass.Add(CreatePodGroup{pass.in.gang->type, std::move(group)});
  pass.Add(RecordEvent{.tells_of_writes = true,
                       .reason = kReasonPodGroupCreated,
                       .message = fmt::format("Created pod group {}: {} at once or none.", name,
                                              WithNoun(members, "pod"))});
}

void Resize(Pass& pass, const Json& group, int members) {
  if (!pass.MayCreate()) return;
  Json spec = PodGroupSpec(*pass.in.gang, members, "", "");
  pass.Add(ResizePodGroup{pass.in.gang->type,
                          kube::Name(group),
                          {{"metadata", {{"uid", kube::Uid(group)}}}, {"spec", std::move(spec)}}});
}

// The group of a start: there before its pods, and of the right size.
void PrepareStart(Pass& pass, const std::string& name, int members) {
  const Json* group = FindGroup(pass, name);
  pass.group = {.name = name, .awaited = group == nullptr || kube::IsDeleting(*group)};
  if (group == nullptr) return Create(pass, name, members);
  if (pass.group.awaited || MembersOf(*pass.in.gang, *group) == members) return;
  if (pass.in.gang->resizable) return Resize(pass, *group, members);
  DeleteGroup(pass, *group);
  pass.group.awaited = true;
}

// The group that pods have joined. One that somebody has deleted is made again, since the pods
// cannot leave it.
void Keep(Pass& pass, const std::string& name, int members) {
  const Json* group = FindGroup(pass, name);
  pass.group = {.name = name, .awaited = group == nullptr};
  if (group == nullptr) return Create(pass, name, members);
  const int has = MembersOf(*pass.in.gang, *group);
  if (has == members) return;
  if (pass.in.gang->resizable && !kube::IsDeleting(*group)) return Resize(pass, *group, members);
  // Of one that cannot shrink there would never be enough pods: those to come are placed alone.
  if (has > members) pass.group.name.clear();
}

void SayThatNobodyQueues(Pass& pass) {
  const bool queues = pass.in.gang != nullptr && pass.in.gang->scheduler == GangScheduler::kVolcano;
  if (queues || Queue(pass).empty() || AnyPod(pass)) return;
  pass.Note(false, kReasonQueueIgnored,
            fmt::format("spec.scheduling.queue ({}) is not obeyed: only Volcano's pod groups have "
                        "queues, and this operator does not use them.",
                        Queue(pass)));
}

}  // namespace

std::string WhyGangWaits(const Pass& pass) {
  const Json* group = pass.group.name.empty() ? nullptr : FindGroup(pass, pass.group.name);
  if (group == nullptr) return "";
  std::string own = WhyGroupWaits(*group);
  bool waits = !own.empty();
  for (const Slot& slot : pass.slots) {
    if (slot.pod == nullptr) continue;
    if (!slot.pod->node.empty()) return "";
    if (slot.pod->unschedulable.empty()) continue;
    waits = true;
    if (slot.pod->unschedulable.find(own) != std::string::npos) own.clear();  // said already
  }
  if (!waits) return "";
  return fmt::format("The gang of {} waits{}{}. ", MembersOf(*pass.in.gang, *group),
                     own.empty() ? "" : ": ", own);
}

void DeletePodGroups(Pass& pass) {
  if (pass.in.gang != nullptr) DeleteOthers(pass, "");
}

void ApplyScheduling(Pass& pass) {
  SayThatNobodyQueues(pass);
  const int members = Members(pass);
  if (members == 0) return DeletePodGroups(pass);
  const bool starts = !AnyPod(pass);
  const std::string name = starts ? NewGroupName(pass) : GroupOfPods(pass);
  DeleteOthers(pass, name);
  if (starts) {
    PrepareStart(pass, name, members);
  } else if (!name.empty()) {
    Keep(pass, name, members);
  }
}

}  // namespace ringmaster::reconcile
