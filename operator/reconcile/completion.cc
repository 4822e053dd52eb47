#include "operator/reconcile/completion.h"

#include <algorithm>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "common/text.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/evaluation_result.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"

namespace ringmaster::reconcile {
namespace {

const FinishedReport* ReportOf(const Pass& pass, const Slot& slot) {
  if (slot.member == nullptr || slot.view == nullptr || !slot.view->finished) return nullptr;
  return slot.view->finished->round == pass.status.round ? &*slot.view->finished : nullptr;
}

bool PodSucceeded(const Slot& slot) {
  return slot.pod != nullptr && slot.pod->phase == PodPhase::kSucceeded;
}

bool WorkerZeroDecides(const Pass& pass) {
  return pass.spec.success_policy == v1::SuccessPolicy::kWorkerZero;
}

// The slots that must be done for the job to be.
std::span<const Slot> Deciding(const Pass& pass) {
  const std::span<const Slot> all(pass.slots);
  return WorkerZeroDecides(pass) ? all.first(std::min<std::size_t>(1, all.size())) : all;
}

// Those of them who train: an index that the round in force has no place for, since it came later,
// has no part in its end.
std::vector<const Slot*> DecidingTrainers(const Pass& pass) {
  std::vector<const Slot*> trainers;
  for (const Slot& slot : Deciding(pass)) {
    const auto& members = pass.status.members;
    const bool has_place =
        std::any_of(members.begin(), members.end(),
                    [&](const v1::Member& member) { return member.rank == slot.index; });
    if (has_place) trainers.push_back(&slot);
  }
  return trainers;
}

// The result counts once every deciding worker is through: it has said so, or has left with exit
// code 0 in a round whose others have said so. A worker that dies before its last checkpoint is on
// disk must not be covered up by a faster one.
void StoreResult(Pass& pass) {
  const FinishedReport* report = nullptr;
  for (const Slot* slot : DecidingTrainers(pass)) {
    const FinishedReport* own = ReportOf(pass, *slot);
    if (own == nullptr && !PodSucceeded(*slot)) return;
    if (report == nullptr) report = own;
  }
  if (report == nullptr) return;
  pass.status.result = v1::TrainingResult{.weights_sha256 = report->weights_sha256,
                                          .steps = report->steps,
                                          .accuracy = report->accuracy,
                                          .loss = report->loss,
                                          .evaluation = ToResult(report->evaluation)};
  for (const LabelReport& label : report->labels)
    pass.status.result->labels.push_back({.name = label.name, .auroc = label.auroc});
  if (report->skipped_steps > 0) pass.status.result->skipped_steps = report->skipped_steps;
  if (!report->stopped_early.empty()) {
    pass.status.result->stopped_early = report->stopped_early;
    pass.Note(false, kReasonStoppedEarly,
              fmt::format("Training stopped early, after {} steps: {}.", report->steps,
                          report->stopped_early));
  }
  SetCondition(
      pass, kConditionTraining, false, kReasonCompleted,
      fmt::format("Training is over after {} steps; the workers are leaving.", report->steps));
}

// Workers that have nothing left to do may take a while to leave, or die in leaving: neither
// changes the result.
bool HaveLeft(Pass& pass) {
  const v1::Condition* training = FindCondition(pass.status, kConditionTraining);
  const Time patience_ends =
      training->last_transition_time.value_or(pass.now) + pass.in.settings.drain_timeout;
  if (pass.now >= patience_ends) return true;
  pass.WakeAt(patience_ends);
  const auto trainers = DecidingTrainers(pass);
  return std::all_of(trainers.begin(), trainers.end(), [](const Slot* slot) {
    return slot->pod == nullptr || slot->pod->Terminal();
  });
}

std::string WhatWasTrained(const v1::TrainingResult& result) {
  const std::string accuracy =
      result.accuracy < 0 ? "" : fmt::format(" to accuracy {:.4f}", result.accuracy);
  const std::string why =
      result.stopped_early ? fmt::format(", and stopped early: {}", *result.stopped_early) : "";
  const std::string skipped =
      result.skipped_steps
          ? fmt::format(", of which {} {} left out for a loss that is not finite{}",
                        *result.skipped_steps, *result.skipped_steps == 1 ? "was" : "were",
                        accuracy.empty() ? "" : ",")
          : "";
  return fmt::format("Trained {} steps{}{}{}; weights sha256:{}.", result.steps, skipped, accuracy,
                     why, result.weights_sha256);
}

void CompleteNative(Pass& pass) {
  if (!pass.status.result) StoreResult(pass);
  if (!pass.status.result || !HaveLeft(pass)) return;
  pass.Succeed(WhatWasTrained(*pass.status.result));
}

void CompleteForeign(Pass& pass) {
  const auto deciding = Deciding(pass);
  if (!std::all_of(deciding.begin(), deciding.end(), PodSucceeded)) return;
  pass.Succeed(WorkerZeroDecides(pass) ? "Worker 0 has ended with exit code 0."
                                       : fmt::format("All {} have ended with exit code 0.",
                                                     WithNoun(pass.slots.size(), "worker")));
}

}  // namespace

bool TrainingIsOver(const Pass& pass) {
  return pass.status.result ||
         std::any_of(pass.slots.begin(), pass.slots.end(),
                     [&](const Slot& s) { return ReportOf(pass, s) != nullptr; });
}

bool AwaitsResult(const Pass& pass, const WorkerView& view) {
  if (pass.status.result) return false;
  const bool counts = std::any_of(pass.slots.begin(), pass.slots.end(), [&](const Slot& slot) {
    return slot.view == &view && ReportOf(pass, slot) != nullptr;
  });
  const auto trainers = DecidingTrainers(pass);
  return counts && std::all_of(trainers.begin(), trainers.end(), [&](const Slot* slot) {
           if (ReportOf(pass, *slot) != nullptr || PodSucceeded(*slot)) return true;
           return slot->member != nullptr && pass.MayStillSpeak(slot->member->pod_uid);
         });
}

void ApplyCompletion(Pass& pass) {
  if (pass.Native()) {
    CompleteNative(pass);
  } else {
    CompleteForeign(pass);
  }
}

}  // namespace ringmaster::reconcile
