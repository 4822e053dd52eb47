#include "operator/rendezvous/worker_record.h"

#include <algorithm>
#include <cmath>

#include "ringmaster/rendezvous/v1/rendezvous.pb.h"

namespace ringmaster::rendezvous {
namespace {

using reconcile::WorkerView;

template <typename Report>
Effect Append(Report report, std::vector<Report>& reports) {
  if (reports.size() >= kReportsKept) reports.erase(reports.begin());
  reports.push_back(std::move(report));
  return Effect::kChanged;
}

Effect TakeReady(const v1::Ready& ready, WorkerView& view) {
  view.ready = reconcile::ReadyReport{.address = ready.address(),
                                      .kernels_digest = ready.kernels_digest(),
                                      .model = ready.model(),
                                      .parameters = ready.parameters(),
                                      .total_steps = ready.total_steps()};
  return Effect::kChanged;
}

// What is not finite has no form in JSON, and is no better than any.
std::optional<double> Maybe(bool has, double value) {
  return has && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

reconcile::EvaluationReport ToReport(const v1::Evaluation& evaluation) {
  return {.step = evaluation.step(),
          .loss = evaluation.loss(),
          .accuracy = evaluation.accuracy(),
          .top5_accuracy = Maybe(evaluation.has_top5_accuracy(), evaluation.top5_accuracy()),
          .perplexity = Maybe(evaluation.has_perplexity(), evaluation.perplexity()),
          .auroc = Maybe(evaluation.has_auroc(), evaluation.auroc())};
}

Effect TakeProgress(std::int64_t round, const v1::Progress& progress, Time now, WorkerView& view) {
  reconcile::ProgressReport report{.round = round,
                                   .step = progress.step(),
                                   .total_steps = progress.total_steps(),
                                   .epoch = progress.epoch(),
                                   .loss = progress.loss(),
                                   .samples_per_second = progress.samples_per_second(),
                                   .step_seconds = progress.step_seconds(),
                                   .allreduce_seconds = progress.allreduce_seconds(),
                                   .skipped_steps = progress.skipped_steps(),
                                   .time = now};
  if (progress.accuracy() >= 0) report.accuracy = progress.accuracy();
  if (progress.has_evaluation()) report.evaluation = ToReport(progress.evaluation());
  view.progress = report;
  return Effect::kProgress;
}

Effect TakeShard(std::int64_t round, const v1::ShardDurable& shard, WorkerView& view) {
  const auto same = [&](const reconcile::ShardReport& report) {
    return report.round == round && report.step == shard.step();
  };
  const auto known = std::find_if(view.durable.begin(), view.durable.end(), same);
  if (known != view.durable.end()) {
    if (known->digest == shard.digest()) return Effect::kNone;
    view.durable.erase(known);
  }
  return Append(
      reconcile::ShardReport{.round = round,
                             .step = shard.step(),
                             .digest = shard.digest(),
                             .metric_value = Maybe(shard.has_metric_value(), shard.metric_value())},
      view.durable);
}

template <typename Trouble>
Effect TakeTrouble(std::int64_t round, const Trouble& trouble, Time now,
                   std::vector<reconcile::CheckpointTrouble>& troubles) {
  for (const reconcile::CheckpointTrouble& known : troubles) {
    if (known.round == round && known.step == trouble.step() && known.message == trouble.message())
      return Effect::kNone;
  }
  return Append(
      reconcile::CheckpointTrouble{
          .round = round, .step = trouble.step(), .message = trouble.message(), .time = now},
      troubles);
}

Effect TakePeerLost(std::int64_t round, const v1::PeerLost& lost, Time now, WorkerView& view) {
  for (const reconcile::PeerLostReport& known : view.peers_lost) {
    if (known.round == round && known.rank == lost.rank()) return Effect::kNone;
  }
  return Append(
      reconcile::PeerLostReport{
          .round = round, .rank = lost.rank(), .message = lost.message(), .time = now},
      view.peers_lost);
}

Effect TakeFinished(std::int64_t round, const v1::Finished& finished, WorkerView& view) {
  view.finished = reconcile::FinishedReport{.round = round,
                                            .weights_sha256 = finished.weights_sha256(),
                                            .steps = finished.steps(),
                                            .accuracy = finished.accuracy(),
                                            .loss = finished.loss(),
                                            .stopped_early = finished.stopped_early(),
                                            .skipped_steps = finished.skipped_steps()};
  if (finished.has_evaluation()) view.finished->evaluation = ToReport(finished.evaluation());
  for (const v1::LabelAuroc& label : finished.labels()) {
    view.finished->labels.push_back(
        {.name = label.name(), .auroc = Maybe(label.has_auroc(), label.auroc())});
  }
  return Effect::kChanged;
}

// Events that speak of the worker, whatever the round; nothing for the others.
std::optional<Effect> ApplyToWorker(const v1::Event& event, Time now, WorkerView& view) {
  switch (event.kind_case()) {
    case v1::Event::kReady:
      return TakeReady(event.ready(), view);
    case v1::Event::kDrainRequested:
      if (view.drain_requested) return Effect::kNone;
      view.drain_requested = now;
      return Effect::kChanged;
    case v1::Event::kDrained:
      view.drained_step = event.drained().step();
      return Effect::kChanged;
    case v1::Event::kExited:
      view.exited = reconcile::ExitReport{.exit_code = event.exited().exit_code(),
                                          .message = event.exited().message(),
                                          .out_of_memory = event.exited().out_of_memory(),
                                          .time = now};
      return Effect::kChanged;
    default:
      return std::nullopt;
  }
}

Effect ApplyToRound(const v1::Event& event, Time now, WorkerView& view) {
  const std::int64_t round = event.round();
  switch (event.kind_case()) {
    case v1::Event::kProgress:
      return TakeProgress(round, event.progress(), now, view);
    case v1::Event::kShardDurable:
      return TakeShard(round, event.shard_durable(), view);
    case v1::Event::kCheckpointFailed:
      return TakeTrouble(round, event.checkpoint_failed(), now, view.checkpoint_failures);
    case v1::Event::kCheckpointRejected:
      return TakeTrouble(round, event.checkpoint_rejected(), now, view.checkpoint_rejections);
    case v1::Event::kPeerLost:
      return TakePeerLost(round, event.peer_lost(), now, view);
    case v1::Event::kFinished:
      return TakeFinished(round, event.finished(), view);
    default:
      return Effect::kNone;  // a kind that this version does not know
  }
}

}  // namespace

Effect Apply(const v1::Event& event, std::int64_t announced, Time now, WorkerView& view) {
  if (const std::optional<Effect> effect = ApplyToWorker(event, now, view)) return *effect;
  if (event.round() < announced || event.round() < view.round) return Effect::kNone;
  const Effect moved = MoveToRound(event.round(), view);
  return std::max(moved, ApplyToRound(event, now, view));
}

Effect MoveToRound(std::int64_t round, WorkerView& view) {
  if (round <= view.round) return Effect::kNone;
  view.round = round;
  std::erase_if(view.durable,
                [&](const reconcile::ShardReport& report) { return report.round != round; });
  return Effect::kChanged;
}

void ForgetShardsUpTo(std::int64_t step, WorkerView& view) {
  std::erase_if(view.durable,
                [&](const reconcile::ShardReport& report) { return report.step <= step; });
}

}  // namespace ringmaster::rendezvous
