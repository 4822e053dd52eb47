#include <fmt/format.h>

#include "operator/controller/events.h"
#include "operator/reconcile/budget.h"
#include "operator/reconcile/checkpoints.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/drain.h"
#include "operator/reconcile/losses.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile {
namespace {

std::string Sentence(const Pass& pass, const Loss& loss) {
  const bool member = pass.slots[loss.index].member != nullptr;
  return fmt::format("Worker {} ({}{}) {}", loss.index, loss.pod,
                     member ? fmt::format(", round {}", pass.status.round) : "", loss.verdict.what);
}

// With the worker's last lines, for messages that end the job.
std::string WithLog(const std::string& sentence, const Loss& loss) {
  return loss.verdict.log.empty() ? sentence + "."
                                  : fmt::format("{}: {}", sentence, loss.verdict.log);
}

std::string WhatNext(Pass& pass) {
  if (!pass.Native()) return "the program starts again in the next round";
  if (MembersStillDrain(pass)) return "training resumes from the checkpoint that is being written";
  if (pass.status.checkpoints.empty())
    return "no checkpoint exists yet, so it starts again from " + FirstStep(pass);
  return fmt::format("training resumes from the checkpoint of step {}",
                     pass.status.checkpoints.front().step);
}

Duration Window(const Pass& pass) {
  return std::chrono::seconds(pass.spec.restart.window_seconds);
}

void RecordIncident(Pass& pass, const Loss& root, const std::string& sentence) {
  v1::RestartCounts& counts = pass.restarts();
  const v1::Member* member = pass.slots[root.index].member;
  counts.total += 1;
  counts.by_cause[std::string(ToString(root.verdict.cause))] += 1;
  counts.recent.push_back(
      {.round = pass.status.round,
       .cause = std::string(ToString(root.verdict.cause)),
       .pod = root.pod,
       .rank = member == nullptr ? std::nullopt : std::optional<std::int32_t>(member->rank),
       .exit_code = root.verdict.exit_code,
       .message = controller::CutMessage(WithLog(sentence, root)),
       .time = pass.now});
  Prune(counts.recent, Window(pass), pass.now);
  if (member != nullptr) pass.lost().detect += Seconds(pass.now - root.since);
}

// False when the budget of the root's cause is spent; the job has failed then.
bool WithinBudget(Pass& pass, const Loss& root, const std::string& sentence) {
  const Cause cause = root.verdict.cause;
  const std::optional<int> budget = BudgetOf(pass.spec.restart, cause);
  const int count = CountWithin(pass.restarts().recent, cause, Window(pass), pass.now);
  if (!budget || count <= *budget) return true;
  pass.Fail(kReasonBudgetExhausted,
            fmt::format("Incident {} of cause {} within {}, and spec.restart.{} forgives {}. {}",
                        count, ToString(cause), FormatDuration(Window(pass)), BudgetField(cause),
                        *budget, WithLog(sentence, root)));
  return false;
}

const Loss* FindPermanent(const std::vector<Loss>& losses) {
  for (const Loss& loss : losses) {
    if (loss.verdict.permanent) return &loss;
  }
  return nullptr;
}

// All that is to be seen may be consequences, because the news of the first failure travels
// another way. True while it is worth waiting for it.
bool RootMayStillCome(Pass& pass, const Loss& root) {
  if (!root.verdict.consequence) return false;
  const Time ends = root.since + pass.in.settings.root_cause_wait;
  if (pass.now >= ends) return false;
  pass.WakeAt(ends);
  return true;
}

// A round is all or nothing: workers that had left it with exit code 0 are needed again.
void ReplaceThoseDone(Pass& pass) {
  for (const Slot& slot : pass.slots) {
    if (slot.pod != nullptr && slot.pod->phase == PodPhase::kSucceeded) {
      pass.NextIncarnation(slot.index);
    }
  }
}

void ReplaceLost(Pass& pass, const std::vector<Loss>& losses) {
  for (const Loss& loss : losses) pass.NextIncarnation(loss.index);
  ReplaceThoseDone(pass);
}

// Between an incident and the round that follows it.
bool AwaitsNextRound(const Pass& pass) {
  const v1::Condition* training = FindCondition(pass.status, kConditionTraining);
  return training != nullptr && training->reason == kReasonWorkerLost;
}

void TellIncident(Pass& pass, const Loss& root, const std::string& sentence) {
  const std::string text =
      fmt::format("{}; {} replaces it, and {}.", sentence,
                  PodName(pass.name, root.index, *pass.IncarnationOf(root.index)), WhatNext(pass));
  SetCondition(pass, kConditionTraining, false, kReasonWorkerLost, text);
  RemoveCondition(pass.status, kConditionResizing);
  EndDraining(pass.status);
  pass.Note(true, kReasonWorkerLost, text);
}

}  // namespace

void ApplyRestart(Pass& pass) {
  if (pass.status.result) return;
  const std::vector<Loss> losses = FindLosses(pass);
  if (losses.empty()) {
    // Who was through before it heard of a loss is needed again, too.
    if (AwaitsNextRound(pass)) ReplaceThoseDone(pass);
    return;
  }
  if (const Loss* permanent = FindPermanent(losses)) {
    const std::string sentence = Sentence(pass, *permanent) + "; a restart would end the same way";
    RecordIncident(pass, *permanent, sentence);
    pass.Fail(kReasonPermanentError, WithLog(sentence, *permanent));
    return;
  }
  const Loss* root = RootOf(losses);
  if (root == nullptr) {
    ReplaceLost(pass, losses);
    return;
  }
  if (RootMayStillCome(pass, *root)) return;
  const std::string sentence = Sentence(pass, *root);
  RecordIncident(pass, *root, sentence);
  if (!WithinBudget(pass, *root, sentence)) return;
  ReplaceLost(pass, losses);
  TellIncident(pass, *root, sentence);
}

}  // namespace ringmaster::reconcile
