#include "operator/reconcile/scaling.h"

#include <set>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile {
namespace {

// Indices past the wanted number that have a pod still counted on, ascending.
std::set<int> Surplus(const Pass& pass) {
  std::set<int> indices;
  for (const PodFacts& pod : pass.pods) {
    const bool wanted = pod.index < static_cast<int>(pass.slots.size());
    if (!wanted && !pass.Outdated(pod)) indices.insert(pod.index);
  }
  return indices;
}

bool InRound(const Pass& pass, const std::set<int>& indices) {
  for (const PodFacts& pod : pass.pods) {
    if (!indices.contains(pod.index)) continue;
    for (const v1::Member& member : pass.status.members) {
      if (member.pod_uid == pod.uid) return true;
    }
  }
  return false;
}

std::string Names(const Pass& pass, const std::set<int>& indices) {
  std::vector<std::string> names;
  for (const int index : indices) {
    names.push_back(PodName(pass.name, index, pass.IncarnationOf(index).value_or(0)));
  }
  return NameList(names);
}

}  // namespace

bool ReadyToResize(Pass& pass, const char* reason, const std::string& message) {
  if (!pass.Native() || !IsTrue(pass.status, kConditionTraining)) return true;
  if (SetCondition(pass, kConditionResizing, true, reason, message)) {
    pass.Note(false, reason, message);
  }
  const Time since = FindCondition(pass.status, kConditionResizing)->last_transition_time.value();
  const auto& checkpoints = pass.status.checkpoints;
  const bool saved = !checkpoints.empty() && checkpoints.front().time > since;
  const Time ends = since + pass.in.settings.drain_timeout;
  if (!saved && pass.now < ends) {
    // Each pass says so again: the operator that said it first may have died before anyone heard.
    pass.TellMembers(CheckpointNowCommand{.wanted_since = since});
    pass.WakeAt(ends);
    return false;
  }
  RemoveCondition(pass.status, kConditionResizing);
  return true;
}

bool HasSurplusMembers(const Pass& pass) {
  return InRound(pass, Surplus(pass));
}

void ApplyScaling(Pass& pass) {
  if (pass.status.result) return;
  const std::set<int> surplus = Surplus(pass);
  if (surplus.empty()) return;
  const std::string wanted = WithNoun(pass.slots.size(), "worker") + " wanted";
  const std::string names = Names(pass, surplus);
  if (InRound(pass, surplus) &&
      !ReadyToResize(pass, kReasonScalingDown,
                     fmt::format("{}; after a checkpoint these leave: {}.", wanted, names))) {
    return;
  }
  pass.Note(false, kReasonScalingDown, fmt::format("{}; leaving: {}.", wanted, names));
  for (const int index : surplus) pass.NextIncarnation(index);
}

}  // namespace ringmaster::reconcile
