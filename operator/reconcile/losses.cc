#include "operator/reconcile/losses.h"

#include <algorithm>
#include <tuple>

#include "operator/reconcile/completion.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/kernels.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile {
namespace {

// When a peer first said, in the round in force, that this member is lost.
std::optional<Time> AccusedAt(const Pass& pass, const Slot& slot) {
  std::optional<Time> first;
  if (slot.member == nullptr) return first;
  for (const WorkerView& view : pass.in.workers.workers) {
    for (const PeerLostReport& report : view.peers_lost) {
      if (report.round != pass.status.round || report.rank != slot.member->rank) continue;
      first = std::min(first.value_or(report.time), report.time);
    }
  }
  return first;
}

// Whether this member's trainer has itself given the round up, gone on in it since, or reached its
// end: one that is merely blamed for another's silence does one of these.
bool SpokeSince(const Pass& pass, const WorkerView& view, Time accused) {
  if (view.finished || view.drained_step) return true;
  const bool gave_up =
      std::any_of(view.peers_lost.begin(), view.peers_lost.end(),
                  [&](const PeerLostReport& report) { return report.round == pass.status.round; });
  return gave_up || (view.progress && view.progress->time > accused);
}

// A launcher that is there with a trainer that is stuck: only the peers see it.
std::optional<Time> HungTrainer(Pass& pass, const Slot& slot) {
  const std::optional<Time> accused = AccusedAt(pass, slot);
  if (!pass.Native() || !accused || SpokeSince(pass, *slot.view, *accused)) return std::nullopt;
  const Time patience_ends = *accused + pass.in.settings.reconnect_timeout;
  if (pass.now >= patience_ends) return *accused;
  pass.WakeAt(patience_ends);
  return std::nullopt;
}

// When the silence of a running member began. One that this operator has never heard of is silent
// since the operator listens and can tell who calls, or since the round began, if that is later.
Time SilentSince(const Pass& pass, const Slot& slot) {
  if (slot.view != nullptr) return slot.view->disconnected_at.value_or(slot.view->last_heard);
  const v1::Condition* training = FindCondition(pass.status, kConditionTraining);
  const bool later = training != nullptr && training->last_transition_time &&
                     *training->last_transition_time > pass.in.workers.since;
  return later ? *training->last_transition_time : pass.in.workers.since;
}

std::optional<Time> SilentLoss(Pass& pass, const Slot& slot) {
  if (slot.member == nullptr || !slot.pod->Running()) return std::nullopt;
  if (slot.view != nullptr && slot.view->connected) return HungTrainer(pass, slot);
  const Duration whole = slot.view == nullptr ? pass.in.settings.first_contact_timeout
                                              : pass.in.settings.reconnect_timeout;
  const Duration patience = AccusedAt(pass, slot) ? whole / 2 : whole;
  const Time since = SilentSince(pass, slot);
  // It may have called while nobody could be told from a stranger.
  const Time patience_ends = std::max(since, pass.in.workers.since) + patience;
  if (pass.now >= patience_ends) return since;
  pass.WakeAt(patience_ends);
  return std::nullopt;
}

// When the pod's container ended, or `unsaid` where nobody says when. That time is of the node's
// clock, which may be far from ours: a worker that was heard of later ended later, and nothing
// waits until our clock gets to where the node's is.
Time EndedAt(const Pass& pass, const Slot& slot, Time unsaid) {
  const Time finished = slot.pod->finished_at.value_or(unsaid);
  if (slot.view == nullptr)
    return finished <= pass.now ? finished : pass.now - pass.in.settings.root_cause_wait;
  return finished <= pass.now ? std::max(finished, slot.view->last_heard) : slot.view->last_heard;
}

// A native worker that left with exit code 0 although training is not over: it was asked to leave.
// Its word that training is over may still be on the way, so this waits for a moment.
std::optional<Time> EarlyLeaver(Pass& pass, const Slot& slot) {
  if (!pass.Native() || TrainingIsOver(pass)) return std::nullopt;
  const Time since = EndedAt(pass, slot, pass.now - pass.in.settings.root_cause_wait);
  if (slot.view != nullptr && slot.view->drained_step) return since;
  if (pass.now >= since + pass.in.settings.root_cause_wait) return since;
  pass.WakeAt(since + pass.in.settings.root_cause_wait);
  return std::nullopt;
}

// A native worker that was asked to leave, has, and says so before its pod does.
bool LeftAsAsked(const Pass& pass, const Slot& slot) {
  return pass.Native() && slot.view != nullptr && slot.view->exited &&
         slot.view->exited->exit_code == 0 && slot.view->drained_step && !TrainingIsOver(pass);
}

std::optional<Time> LostSince(Pass& pass, const Slot& slot) {
  if (slot.pod == nullptr) {
    return slot.member == nullptr ? std::nullopt : std::optional<Time>(pass.now);
  }
  const PodFacts& pod = *slot.pod;
  if (pod.phase == PodPhase::kSucceeded) return EarlyLeaver(pass, slot);
  const bool failed =
      slot.view != nullptr && slot.view->exited && slot.view->exited->exit_code != 0;
  if (failed || LeftAsAsked(pass, slot)) return slot.view->exited->time;
  if (pod.phase == PodPhase::kFailed) return EndedAt(pass, slot, pass.now);
  if (pod.deleting || pod.phase == PodPhase::kUnknown) return pass.now;
  if (RefusedForKernels(pass, slot)) return pass.now;
  // It has ended and says nothing more, but its stream still stands.
  if (slot.view != nullptr && slot.view->leaving) return std::nullopt;
  return SilentLoss(pass, slot);
}

// A pod that was made before the latest incident of the round in force fell with it.
bool Counted(const Pass& pass, const Slot& slot) {
  if (!pass.status.restarts || pass.status.restarts->recent.empty()) return false;
  if (pass.status.restarts->recent.back().round != pass.status.round) return false;
  return slot.pod == nullptr || slot.pod->incidents < pass.status.restarts->total;
}

}  // namespace

std::vector<Loss> FindLosses(Pass& pass) {
  std::vector<Loss> losses;
  for (const Slot& slot : pass.slots) {
    const std::optional<Time> since = LostSince(pass, slot);
    if (!since) continue;
    const bool refused =
        slot.pod != nullptr && slot.pod->Running() && RefusedForKernels(pass, slot);
    losses.push_back({.index = slot.index,
                      .pod = PodName(pass.name, slot.index, *pass.IncarnationOf(slot.index)),
                      .since = std::min(*since, pass.now),
                      .verdict = refused ? KernelsVerdict(pass, slot)
                                         : Classify(slot.pod, slot.view, pass.Native()),
                      .counted = Counted(pass, slot)});
  }
  return losses;
}

const Loss* RootOf(const std::vector<Loss>& losses) {
  const Loss* root = nullptr;
  const auto rank = [](const Loss& loss) {
    return std::tuple(loss.verdict.consequence, loss.since, loss.index);
  };
  for (const Loss& loss : losses) {
    if (!loss.counted && (root == nullptr || rank(loss) < rank(*root))) root = &loss;
  }
  return root;
}

}  // namespace ringmaster::reconcile
