#include <algorithm>

#include <fmt/format.h>

#include "common/text.h"
#include "operator/reconcile/checkpoint_refs.h"
#include "operator/reconcile/checkpoints.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/drain.h"
#include "operator/reconcile/kernels.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"
#include "operator/reconcile/scaling.h"

namespace ringmaster::reconcile {
namespace {

bool Ready(const Slot& slot) {
  return slot.pod != nullptr && slot.pod->Running() && slot.view != nullptr &&
         slot.view->connected && slot.view->ready && !slot.view->departing && !slot.view->exited &&
         !slot.view->drain_requested && !slot.view->drained_step;
}

// The slot's pod is a member, at the address that it has now.
bool InForce(const Slot& slot) {
  if (slot.member == nullptr || slot.pod == nullptr) return false;
  if (slot.member->pod_uid != slot.pod->uid) return false;
  return !Ready(slot) || slot.view->ready->address == slot.member->address;
}

bool SameMembers(const Pass& pass) {
  return pass.slots.size() == pass.status.members.size() &&
         std::all_of(pass.slots.begin(), pass.slots.end(), InForce);
}

// Every member of the round in force is still wanted and there: changing it is our choice.
bool AllMembersStay(const Pass& pass) {
  const auto staying = std::count_if(pass.slots.begin(), pass.slots.end(), InForce);
  return staying == static_cast<std::ptrdiff_t>(pass.status.members.size());
}

void AnnounceRound(Pass& pass) {
  Announcement announcement{.round = pass.status.round, .shards = pass.status.shards.value_or(0)};
  for (const v1::Member& member : pass.status.members) {
    announcement.members.push_back({.rank = member.rank,
                                    .pod = member.pod,
                                    .pod_uid = member.pod_uid,
                                    .address = member.address});
  }
  for (const v1::CheckpointStatus& checkpoint : pass.status.checkpoints) {
    announcement.checkpoints.push_back(ToRef(checkpoint));
  }
  pass.Announce(std::move(announcement));
}

void SayWhoIsMissing(Pass& pass) {
  const v1::Condition* training = FindCondition(pass.status, kConditionTraining);
  const bool told = training != nullptr && training->reason == kReasonWorkerLost;
  if (told) return;  // what was lost, and what replaces it, says more
  std::vector<std::string> missing;
  for (const Slot& slot : pass.slots) {
    if (Ready(slot)) continue;
    missing.push_back(PodName(pass.name, slot.index, pass.IncarnationOf(slot.index).value_or(0)));
  }
  SetCondition(
      pass, kConditionTraining, false, kReasonWaitingForWorkers,
      fmt::format("{} of {} have joined; waiting for {}.", pass.slots.size() - missing.size(),
                  WithNoun(pass.slots.size(), "worker"), NameList(missing)));
}

// What the incidents since the last round cost: until the last replacement ran, and from there to
// this new round. Container times have whole seconds only, hence the bounds.
void CountOutage(Pass& pass) {
  if (!pass.status.restarts) return;
  std::optional<Time> began;
  for (const v1::Incident& incident : pass.status.restarts->recent) {
    if (incident.round == pass.status.round && incident.time && !began) began = incident.time;
  }
  if (!began) return;
  Time ran = *began;
  for (const Slot& slot : pass.slots) {
    if (slot.pod->started_at) ran = std::max(ran, std::min(*slot.pod->started_at, pass.now));
  }
  pass.lost().schedule += Seconds(ran - *began);
  pass.lost().rendezvous += Seconds(pass.now - ran);
}

std::string Beginning(const Pass& pass) {
  if (!pass.Native()) return "";
  if (pass.status.checkpoints.empty()) return ", from " + FirstStep(pass);
  return fmt::format(", from the checkpoint of step {}", pass.status.checkpoints.front().step);
}

void FormRound(Pass& pass) {
  CountOutage(pass);
  if (pass.Native() && !pass.status.shards) {
    pass.status.shards = pass.spec.trainer->batch.shards.value_or(0);
  }
  FixKernels(pass);
  ++pass.status.round;
  pass.status.members.clear();
  for (const Slot& slot : pass.slots) {
    pass.status.members.push_back({.rank = slot.index,
                                   .pod = slot.pod->name,
                                   .pod_uid = slot.pod->uid,
                                   .address = slot.view->ready->address});
  }
  const std::string text = fmt::format("Round {}: {}{}.", pass.status.round,
                                       WithNoun(pass.slots.size(), "worker"), Beginning(pass));
  SetCondition(pass, kConditionTraining, true, kReasonRoundStarted, text);
  pass.Note(false, kReasonRoundStarted, text);
  AnnounceRound(pass);
}

// Whether the round in force goes on for now although its members are not those wanted.
bool MustWait(Pass& pass) {
  if (HasSurplusMembers(pass)) return true;
  if (!AllMembersStay(pass)) return false;
  return !std::all_of(pass.slots.begin(), pass.slots.end(), Ready) ||
         !ReadyToResize(pass, kReasonScalingUp,
                        fmt::format("The round grows from {} to {} workers after a checkpoint.",
                                    pass.status.members.size(), pass.slots.size()));
}

}  // namespace

void ApplyRounds(Pass& pass) {
  if (pass.status.result) return;
  const bool in_force = IsTrue(pass.status, kConditionTraining);
  if (in_force && SameMembers(pass)) {
    RemoveCondition(pass.status, kConditionResizing);
    AnnounceRound(pass);
  } else if (in_force && MustWait(pass)) {
    AnnounceRound(pass);
  } else if (std::all_of(pass.slots.begin(), pass.slots.end(), Ready)) {
    // Those who leave may still be writing what this round is to begin with.
    if (!MembersMayStillDrain(pass)) FormRound(pass);
  } else {
    SayWhoIsMissing(pass);
  }
}

}  // namespace ringmaster::reconcile
