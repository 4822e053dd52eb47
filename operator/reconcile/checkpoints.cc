#include "operator/reconcile/checkpoints.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "common/sha256.h"
#include "common/text.h"
#include "operator/reconcile/checkpoint_refs.h"
#include "operator/reconcile/conditions.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/policies.h"
#include "operator/reconcile/reasons.h"
#include "proto/ringmaster/training/v1alpha1/metric.h"

namespace ringmaster::reconcile {
namespace {

const ShardReport* ReportOf(const Pass& pass, const v1::Member& member, std::int64_t step) {
  const WorkerView* view = pass.ViewOf(member.pod_uid);
  if (view == nullptr) return nullptr;
  for (const ShardReport& report : view->durable) {
    if (report.round == pass.status.round && report.step == step) return &report;
  }
  return nullptr;
}

// The newest step of this round that is committed; -1 for none. Steps of a round only grow, so
// reports up to it have had their turn, whether their checkpoint is still kept or not.
std::int64_t NewestOfRound(const Pass& pass) {
  std::int64_t newest = -1;
  for (const v1::CheckpointStatus& checkpoint : pass.status.checkpoints) {
    if (checkpoint.round == pass.status.round) newest = std::max(newest, checkpoint.step);
  }
  return newest;
}

// sha256 over the hexadecimal digests of the shard files in rank order, each with a line feed
// behind it; nothing while a member has not reported this step.
std::optional<std::string> DigestOf(const Pass& pass, std::int64_t step) {
  Sha256 hash;
  for (const v1::Member& member : pass.status.members) {
    const ShardReport* report = ReportOf(pass, member, step);
    if (report == nullptr) return std::nullopt;
    hash.Update(report->digest);
    hash.Update("\n");
  }
  return Hex(hash.Finish());
}

// Steps that rank 0 has reported in this round past the newest that is committed, ascending.
std::set<std::int64_t> Candidates(const Pass& pass) {
  std::set<std::int64_t> steps;
  if (pass.status.members.empty()) return steps;
  const WorkerView* view = pass.ViewOf(pass.status.members.front().pod_uid);
  if (view == nullptr) return steps;
  const std::int64_t newest = NewestOfRound(pass);
  for (const ShardReport& report : view->durable) {
    if (report.round == pass.status.round && report.step > newest) steps.insert(report.step);
  }
  return steps;
}

bool HasFailed(const WorkerView& view, std::int64_t round, std::int64_t step) {
  return std::any_of(view.checkpoint_failures.begin(), view.checkpoint_failures.end(),
                     [&](const CheckpointTrouble& trouble) {
                       return trouble.round == round && trouble.step == step;
                     });
}

// Whether every member has reported its shard of this step or still may.
bool MayBecomeWhole(const Pass& pass, std::int64_t step) {
  const auto& members = pass.status.members;
  return std::all_of(members.begin(), members.end(), [&](const v1::Member& member) {
    if (ReportOf(pass, member, step) != nullptr) return true;
    const WorkerView* view = pass.ViewOf(member.pod_uid);
    const bool failed = view != nullptr && HasFailed(*view, pass.status.round, step);
    return !failed && pass.MayStillSpeak(member.pod_uid);
  });
}

// The best of those that exist and were evaluated; nothing where nobody wants to know.
const v1::CheckpointStatus* Best(const Pass& pass) {
  if (!pass.Native() || !pass.spec.checkpoint.keep_best.value_or(false)) return nullptr;
  const v1::Metric metric = v1::MetricOf(pass.spec.trainer->evaluation);
  const v1::CheckpointStatus* best = nullptr;
  const auto& list = pass.status.checkpoints;
  for (auto checkpoint = list.rbegin(); checkpoint != list.rend(); ++checkpoint) {  // oldest first
    if (!checkpoint->metric_value) continue;
    if (best == nullptr ||
        v1::BetterBy(metric, *checkpoint->metric_value, *best->metric_value) > 0) {
      best = &*checkpoint;
    }
  }
  return best;
}

// Takes those past the newest `keep` off the list, but never the best.
std::vector<CheckpointRef> DropOld(Pass& pass) {
  const v1::CheckpointStatus* best = Best(pass);
  const std::int64_t spared = best == nullptr ? -1 : best->step;
  auto& list = pass.status.checkpoints;
  const auto keep = static_cast<std::size_t>(std::max(pass.spec.checkpoint.keep, 1));
  std::vector<CheckpointRef> dropped;
  for (std::size_t i = list.size(); i-- > keep;) {
    if (list[i].step == spared) continue;
    dropped.push_back(ToRef(list[i]));
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return dropped;
}

// Puts the checkpoint in front of the list; the old ones, and one of the same step from an earlier
// round, which its files have replaced, leave it.
void Commit(Pass& pass, v1::CheckpointStatus checkpoint) {
  auto& list = pass.status.checkpoints;
  std::erase_if(list, [&](const auto& other) { return other.step == checkpoint.step; });
  list.insert(list.begin(), checkpoint);
  const CheckpointCommittedCommand command{.checkpoint = ToRef(checkpoint),
                                           .dropped = DropOld(pass)};
  if (pass.status.progress) pass.status.progress->last_checkpoint_step = checkpoint.step;
  SetCondition(pass, kConditionCheckpoints, true, kReasonCheckpointCommitted,
               fmt::format("The checkpoint of step {} is complete.", checkpoint.step));
  pass.Note(false, kReasonCheckpointCommitted,
            fmt::format("The checkpoint of step {} is complete: {} in round {}, sha256:{}.",
                        checkpoint.step, WithNoun(checkpoint.world_size, "shard file"),
                        checkpoint.round, checkpoint.digest.substr(0, 12)));
  pass.TellMembers(command);
}

void CommitWhole(Pass& pass) {
  for (const std::int64_t step : Candidates(pass)) {
    if (const std::optional<std::string> digest = DigestOf(pass, step)) {
      Commit(pass,
             {.step = step,
              .round = pass.status.round,
              .digest = *digest,
              .world_size = static_cast<std::int32_t>(pass.status.members.size()),
              .time = pass.now,
              .metric_value = ReportOf(pass, pass.status.members.front(), step)->metric_value});
    }
  }
}

// Whether a later checkpoint has made up for it.
bool MadeUpFor(const Pass& pass, const CheckpointTrouble& trouble) {
  if (pass.status.checkpoints.empty()) return false;
  const v1::CheckpointStatus& last = pass.status.checkpoints.front();
  return trouble.step <= last.step && trouble.time <= last.time.value_or(Time());
}

std::string WhatComesInstead(const Pass& pass, std::int64_t step) {
  for (const v1::CheckpointStatus& checkpoint : pass.status.checkpoints) {  // newest first
    if (checkpoint.step < step) return fmt::format("for the one of step {}", checkpoint.step);
  }
  return "with none before it";
}

// A checkpoint that does not load everywhere does not exist: its entry goes. The trainer of rank 0
// sets its files aside for whoever wants to look at them (runtime/checkpoint/leftovers.h). The
// commit's time tells an old complaint from a new one.
void DropRejected(Pass& pass) {
  for (const v1::Member& member : pass.status.members) {
    const WorkerView* view = pass.ViewOf(member.pod_uid);
    if (view == nullptr) continue;
    for (const CheckpointTrouble& trouble : view->checkpoint_rejections) {
      const auto dropped =
          std::erase_if(pass.status.checkpoints, [&](const v1::CheckpointStatus& checkpoint) {
            return checkpoint.step == trouble.step && checkpoint.time < trouble.time;
          });
      if (dropped == 0) continue;
      const std::string text = fmt::format(
          "The checkpoint of step {} does not load on worker {} and is skipped {}: {}",
          trouble.step, member.pod, WhatComesInstead(pass, trouble.step), trouble.message);
      if (!MadeUpFor(pass, trouble))
        SetCondition(pass, kConditionCheckpoints, false, kReasonCheckpointRejected, text);
      pass.Note(true, kReasonCheckpointRejected, text);
    }
  }
}

std::string WhatStays(const Pass& pass) {
  if (pass.status.checkpoints.empty()) return "There is none before it.";
  return fmt::format("The one of step {} stays.", pass.status.checkpoints.front().step);
}

// The first member's latest failure that nothing has made up for.
void NameFailure(Pass& pass) {
  for (const v1::Member& member : pass.status.members) {
    const WorkerView* view = pass.ViewOf(member.pod_uid);
    if (view == nullptr || view->checkpoint_failures.empty()) continue;
    const CheckpointTrouble& trouble = view->checkpoint_failures.back();
    if (MadeUpFor(pass, trouble)) continue;
    const std::string text =
        fmt::format("Worker {} could not write its part of the checkpoint of step {}: {}. {}",
                    member.pod, trouble.step, trouble.message, WhatStays(pass));
    const v1::Condition* before = FindCondition(pass.status, kConditionCheckpoints);
    if (before != nullptr && before->message == text) return;
    SetCondition(pass, kConditionCheckpoints, false, kReasonCheckpointFailed, text);
    pass.Note(true, kReasonCheckpointFailed, text);
    return;
  }
}

void NameTheBest(Pass& pass) {
  pass.status.best_checkpoint.reset();
  const v1::CheckpointStatus* best = Best(pass);
  if (best == nullptr) return;
  pass.status.best_checkpoint =
      v1::BestCheckpoint{.step = best->step,
                         .metric = v1::MetricOf(pass.spec.trainer->evaluation),
                         .value = *best->metric_value};
}

}  // namespace

CheckpointRef ToRef(const v1::CheckpointStatus& checkpoint) {
  return {.step = checkpoint.step,
          .round = checkpoint.round,
          .digest = checkpoint.digest,
          .world_size = checkpoint.world_size};
}

bool AwaitsShardsOfOthers(const Pass& pass, const WorkerView& view) {
  const auto& members = pass.status.members;
  const bool counts = std::any_of(members.begin(), members.end(), [&](const v1::Member& member) {
    return member.pod_uid == view.pod_uid;
  });
  if (!counts) return false;
  const std::int64_t newest = NewestOfRound(pass);
  return std::any_of(view.durable.begin(), view.durable.end(), [&](const ShardReport& report) {
    return report.round == pass.status.round && report.step > newest &&
           MayBecomeWhole(pass, report.step);
  });
}

std::string FirstStep(const Pass& pass) {
  return pass.Native() && pass.spec.trainer->start_from ? "what spec.trainer.startFrom names"
                                                        : "step 0";
}

void ApplyCheckpoints(Pass& pass) {
  CommitWhole(pass);
  DropRejected(pass);
  NameFailure(pass);
  NameTheBest(pass);
}

}  // namespace ringmaster::reconcile
