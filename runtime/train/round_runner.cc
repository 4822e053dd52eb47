#include "runtime/train/round_runner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "common/log.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/device/available_memory.h"
#include "runtime/train/memory_check.h"
#include "runtime/train/restore.h"
#include "runtime/train/start_from.h"

namespace ringmaster::train {
namespace {

// How often the ranks ask one another whether the last checkpoint is on disk.
constexpr Duration kAskPeriod = std::chrono::seconds(1);

void LogEvaluation(const Evaluation& evaluation, double epoch, double training_loss) {
  const auto text = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.4f}", *value) : "-";
  };
  log::Info("evaluated", {{"step", evaluation.step},
                          {"epoch", fmt::format("{:.2f}", epoch)},
                          {"loss", text(training_loss)},
                          {"evaluation_loss", text(evaluation.loss)},
                          {"accuracy", text(evaluation.accuracy)},
                          {"top5_accuracy", text(evaluation.top5_accuracy)},
                          {"perplexity", text(evaluation.perplexity)},
                          {"auroc", text(evaluation.auroc)}});
}

}  // namespace

RoundRunner::RoundRunner(const RoundContext& context, const Round& round,
                         collectives::Communicator& communicator)
    : context_(context),
      round_(round),
      communicator_(communicator),
      meter_(context.workload, context.metrics, context.options.progress_period) {}

absl::StatusOr<std::optional<Ending>> RoundRunner::Run() {
  const absl::Status status = Train();
  context_.metrics.Exchanged(communicator_.stats(), counted_);
  if (ending_ || parted_) return ending_;
  return status.ok() ? absl::InternalError("a round ended without an ending") : status;
}

absl::Status RoundRunner::Train() {
  RM_RETURN_IF_ERROR(AgreeOnWorkload());
  RM_RETURN_IF_ERROR(MeasureLinks());
  RM_RETURN_IF_ERROR(Restore());
  RM_RETURN_IF_ERROR(PrepareSteps());
  if (!done()) RM_RETURN_IF_ERROR(CheckMemory());
  while (!done()) {
    RM_ASSIGN_OR_RETURN(const StepFlags decided, Step());
    if (EvaluationIsDue()) RM_RETURN_IF_ERROR(Evaluate());
    if (decided.drain && !done()) return LeaveDrained();
    if (decided.part && !done()) return Part();
    if (done()) break;
    if (CheckpointIsDue(decided)) {
      context_.checkpointer.Submit(context_.replica, Patience());
    }
    context_.checkpointer.OnCommitted(context_.inbox.TakeCommitted());
    if (meter_.IsDue()) context_.events.Send(round_.number, meter_.Take(context_.replica));
  }
  return Finish();
}

// Workers on other data or another configuration would train on in silence, each something else.
absl::Status RoundRunner::AgreeOnWorkload() {
  const std::string mine = context_.workload.Fingerprint();
  RM_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      communicator_.AllgatherBytes(std::as_bytes(std::span(mine)), "workload"));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    return End(contract::kExitBadData,
               fmt::format("worker {} has other data or another configuration than worker 0: its "
                           "data file must be the same",
                           rank));
  }
  return absl::OkStatus();
}

// So that the fastest way is taken over the links that this round has. The bits of a sum of virtual
// shards are the same whichever that is; without them the one way is forced.
absl::Status RoundRunner::MeasureLinks() {
  const bool chooses = context_.options.algorithm == collectives::Algorithm::kAuto;
  if (!chooses || round_.shards == 0 || round_.members.size() < 2) return absl::OkStatus();
  RM_RETURN_IF_ERROR(communicator_.Fit());
  const collectives::Selector& selector = communicator_.selector();
  const auto words = [](const collectives::LinkCost& link) {
    return fmt::format("{:.1f} us, {:.2f} GB/s, {:.1f} us out of step, {:.1f} us by halves",
                       1e6 * link.alpha, 1e-9 / link.beta, 1e6 * link.turn, 1e6 * link.halves);
  };
  log::Debug("links measured", {{"round", round_.number},
                                {"nodes", selector.nodes().nodes()},
                                {"within_a_node", words(selector.model().within)},
                                {"between_nodes", words(selector.model().between)}});
  return absl::OkStatus();
}

absl::Status RoundRunner::Restore() {
  const auto rejected = [this](const checkpoint::CheckpointRef& ref, const absl::Status& why) {
    context_.metrics.checkpoints_rejected.Increment();
    log::Warning("checkpoint does not load", {{"step", ref.id.step}, {"error", why}});
    context_.events.Send(round_.number,
                         CheckpointRejected{.step = ref.id.step, .message = Message(why)});
  };
  context_.checkpointer.StartRound(round_);
  RM_ASSIGN_OR_RETURN(auto existing, RestoreNewest(communicator_, context_.checkpointer.directory(),
                                                   round_.checkpoints, context_.replica, rejected));
  const bool is_anew = existing.empty();
  context_.checkpointer.Restored(round_, std::move(existing));
  if (is_anew) RM_RETURN_IF_ERROR(StartFromBefore());
  log::Info("round begins", {{"round", round_.number},
                             {"rank", round_.rank},
                             {"workers", round_.members.size()},
                             {"step", step()}});
  context_.events.Send(round_.number, meter_.Take(context_.replica));
  return absl::OkStatus();
}

// With a checkpoint of the job's own at once: what it starts from may be gone, or have a newer one,
// when a worker is lost later.
absl::Status RoundRunner::StartFromBefore() {
  if (!context_.workload.config().start_from) return absl::OkStatus();
  RM_ASSIGN_OR_RETURN(
      const std::optional<Ending> ending,
      StartFrom(communicator_, context_.workload, context_.options.workspace, context_.replica));
  if (ending) return End(ending->exit_code, ending->message);
  context_.checkpointer.Submit(context_.replica, Patience());
  return absl::OkStatus();
}

absl::Status RoundRunner::PrepareSteps() {
  // Where memory is counted anew, it is without an evaluation's.
  if (context_.workload.synchronises() || round_.shards == 0) context_.evaluator.Release();
  auto steps = StepRunner::Create({.workload = context_.workload,
                                   .replica = context_.replica,
                                   .shards = context_.shards,
                                   .debug = context_.options.debug,
                                   .timeline = context_.timeline},
                                  round_.shards, communicator_);
  // More memory, or more workers, may be had another time.
  if (absl::IsResourceExhausted(steps.status()))
    return End(ExitCodeFor(steps.status()), Message(steps.status()));
  if (!steps.ok()) return End(contract::kExitBadConfig, Message(steps.status()));
  steps_ = *std::move(steps);
  return absl::OkStatus();
}

// Each by itself had room for what it takes when it loaded the model. What was taken in an earlier
// round is there already; and who gives back something of it has done so before the barrier.
absl::Status RoundRunner::CheckMemory() {
  RM_RETURN_IF_ERROR(communicator_.Barrier("memory"));
  const auto all = static_cast<int64_t>(context_.workload.lasting_bytes() + steps_->bytes() +
                                        context_.evaluator.bytes(communicator_));
  MemoryNeed mine{.bytes = all};
  const std::optional<int64_t> now = device::OwnMemory();
  if (now && context_.memory_before) {
    mine.bytes = std::clamp<int64_t>(all - (*now - *context_.memory_before), 0, all);
    mine.pools = device::MemoryPools();
  }
  RM_ASSIGN_OR_RETURN(const std::optional<std::string> lack, FindLackOfMemory(communicator_, mine));
  return lack ? End(contract::kExitNoResource, *lack) : absl::OkStatus();
}

StepFlags RoundRunner::Wanted() const {
  const bool alone = context_.inbox.draining_alone();
  return {.drain = context_.inbox.draining() && !alone,
          .part = alone,
          .checkpoint = context_.inbox.checkpoint_requested() ||
                        (round_.rank == 0 && context_.checkpointer.DueByTime())};
}

absl::StatusOr<StepFlags> RoundRunner::Step() {
  const collectives::TimelineTrack track(context_.timeline, "step");
  meter_.StepBegins();
  const absl::Status computed = steps_->Compute([this] { return Wanted(); });
  if (!computed.ok() && steps_->sums_failed()) return computed;
  if (!computed.ok()) return End(ExitCodeFor(computed), Message(computed));
  meter_.ShardsComputed(steps_->own_samples());
  RM_ASSIGN_OR_RETURN(const ReductionTraffic traffic, steps_->Reduce());
  meter_.Reduced(traffic);
  context_.metrics.Exchanged(communicator_.stats(), counted_);
  const StepFlags decided = steps_->flags();
  RM_RETURN_IF_ERROR(Commit());
  // A request that came while the step was computed is met by the same checkpoint.
  if (decided.checkpoint) context_.inbox.CheckpointRequestIsMet();
  return decided;
}

absl::Status RoundRunner::Commit() {
  const bool finite = steps_->finite();
  const auto policy = context_.workload.config().non_finite_loss;
  if (!finite && policy != training::v1alpha1::NonFiniteLoss::kSkip) {
    const double loss = steps_->mean_loss();
    return End(contract::kExitDiverged,
               fmt::format("the loss, a gradient or a statistic is not a finite number in step {} "
                           "(loss {}); {}: lower the learning rate or mend the data, or set "
                           "nonFiniteLoss: Skip",
                           step() + 1, loss, WhereNonFinite()));
  }
  RM_RETURN_IF_ERROR(steps_->Commit(!finite));
  meter_.Committed(context_.replica, !finite);
  if (!finite) WarnOfSkippedStep();
  skipped_last_ = !finite;
  return absl::OkStatus();
}

// Looking where it came from takes as long as a step, so only the first of several in a row is
// explained.
void RoundRunner::WarnOfSkippedStep() {
  std::string where = "not looked for again";
  if (!skipped_last_) {
    const auto found = steps_->ExplainNonFinite();
    where = found.ok() ? found->value_or("not in this worker's shards") : Message(found.status());
  }
  log::Warning("step left out: its loss is not finite", {{"step", step()}, {"where", where}});
}

// All ranks ask it in the same step. What one has found counts more than that another could not
// look; where they cannot be asked any more, this rank's answer stands.
std::string RoundRunner::WhereNonFinite() {
  constexpr char kFound = 'f', kFinite = ' ', kError = 'e';
  const auto own = steps_->ExplainNonFinite();
  std::string mine(1, kFinite);
  if (!own.ok()) {
    mine = kError + Message(own.status());
  } else if (own->has_value()) {
    mine = kFound + **own;
  }
  auto all = communicator_.AllgatherBytes(std::as_bytes(std::span(mine)), "where it diverged");
  const bool alone = !all.ok();
  if (alone) {
    all = std::vector<std::string>(round_.members.size());
    (*all)[static_cast<size_t>(round_.rank)] = mine;
  }
  for (const auto& [tag, words] : {std::pair(kFound, ""), std::pair(kError, "could not look: ")}) {
    for (size_t rank = 0; rank < all->size(); ++rank) {
      const std::string& answer = (*all)[rank];
      if (answer.starts_with(tag))
        return fmt::format("on worker {} {}{}", rank, words, answer.substr(1));
    }
  }
  if (alone) return "not in this worker's shards, and the others could not be asked";
  return "what the ops make is finite, and became too large where it was weighed, rounded or "
         "summed";
}

// After the step in which another `everyEpochs` were completed; the last step is always evaluated.
bool RoundRunner::EvaluationIsDue() const {
  if (done()) return true;
  const double every = context_.workload.config().evaluation.every_epochs;
  if (every <= 0) return false;
  const uint64_t steps = context_.replica.step();
  return std::floor(context_.workload.EpochsAfter(steps) / every) >
         std::floor(context_.workload.EpochsAfter(steps - 1) / every);
}

bool RoundRunner::CheckpointIsDue(const StepFlags& decided) const {
  return decided.checkpoint || context_.checkpointer.DueBySteps(step()) ||
         (context_.checkpointer.keeps_best() && context_.replica.improvement().IsBest(step()));
}

absl::Status RoundRunner::Evaluate() {
  const absl::Status computed = context_.evaluator.Compute(communicator_);
  if (absl::IsInvalidArgument(computed)) return End(contract::kExitBadData, Message(computed));
  if (!computed.ok()) return End(ExitCodeFor(computed), Message(computed));
  RM_ASSIGN_OR_RETURN(const std::optional<Evaluation> result,
                      context_.evaluator.Reduce(step(), communicator_));
  if (!result) return absl::OkStatus();
  context_.replica.Evaluated(*result);
  context_.metrics.Evaluated(*result, context_.workload.held_out().format().label_names);
  if (!context_.replica.metric_value()) {
    return End(contract::kExitBadData,
               "the evaluation has no value of spec.trainer.evaluation.metric: Top5 needs 6 "
               "classes, Perplexity text, AUROC held-out samples of both its 2 classes or of "
               "a label's two values");
  }
  if (round_.rank == 0) {
    LogEvaluation(*result, context_.workload.EpochsAfter(context_.replica.step()),
                  context_.replica.loss());
  }
  context_.events.Send(round_.number, meter_.Take(context_.replica));
  return absl::OkStatus();
}

// How long this rank may be busy on its own: its peers, who wait for it, take a longer silence for
// a hang.
Duration RoundRunner::Patience() const {
  return context_.options.operation_timeout / 4;
}

// The run's last checkpoint: what it was for. Then the operator gets a moment to make it exist, so
// that what it drops can still be deleted.
absl::Status RoundRunner::WriteLast() {
  Checkpointer& checkpointer = context_.checkpointer;
  checkpointer.OnCommitted(context_.inbox.TakeCommitted());
  RM_RETURN_IF_ERROR(AwaitDurable());
  const SteadyTime deadline = std::chrono::steady_clock::now() + context_.options.commit_timeout;
  while (!checkpointer.Exists(step()) && !context_.inbox.RoundIsOver()) {
    const auto left =
        std::chrono::duration_cast<Duration>(deadline - std::chrono::steady_clock::now());
    if (left <= Duration::zero()) break;
    checkpointer.OnCommitted(context_.inbox.WaitForCommitted(left));
  }
  return absl::OkStatus();
}

// Until all ranks' parts of this step are on disk. They ask one another now and then, for a rank
// that only waits for its disk would be taken for one that hangs; so whatever ends the round ends
// this wait too.
absl::Status RoundRunner::AwaitDurable() {
  enum Part : int64_t { kFailed, kPending, kDurable };
  const SteadyTime deadline = std::chrono::steady_clock::now() + context_.options.flush_timeout;
  while (true) {
    context_.checkpointer.Submit(context_.replica, Patience());
    const absl::Status mine =
        context_.checkpointer.WaitUntilDurable(step(), std::min(Patience(), kAskPeriod));
    const bool patient =
        absl::IsDeadlineExceeded(mine) && std::chrono::steady_clock::now() < deadline;
    const int64_t part = mine.ok() ? kDurable : patient ? kPending : kFailed;
    int64_t slowest = 0;
    RM_RETURN_IF_ERROR(communicator_.Allreduce(collectives::Reduction::kMin, {&part, 1},
                                               {&slowest, 1}, "checkpoint durable"));
    if (slowest == kDurable) return absl::OkStatus();
    if (slowest == kPending) continue;
    return End(contract::kExitNoResource,
               fmt::format("the checkpoint of step {} could not be written: {}", step(),
                           part == kFailed ? Message(mine) : "another worker failed"));
  }
}

std::vector<LabelAuroc> RoundRunner::LabelsOf(const Evaluation& evaluation) const {
  const std::vector<std::string>& names = context_.workload.held_out().format().label_names;
  std::vector<LabelAuroc> labels;
  for (size_t i = 0; i < evaluation.label_aurocs.size(); ++i)
    labels.push_back({.name = names.at(i), .auroc = evaluation.label_aurocs[i]});
  return labels;
}

absl::Status RoundRunner::Finish() {
  RM_RETURN_IF_ERROR(WriteLast());
  Finished finished{.weights_sha256 = context_.replica.WeightsDigest(),
                    .steps = step(),
                    .loss = context_.replica.loss(),
                    .evaluation = context_.replica.evaluation()};
  if (finished.evaluation) finished.labels = LabelsOf(*finished.evaluation);
  finished.skipped_steps = static_cast<int64_t>(context_.replica.skipped_steps());
  if (!at_last_step()) finished.stopped_early = context_.replica.improvement().WhyItStops();
  context_.events.Send(round_.number, meter_.Take(context_.replica));
  context_.events.Send(round_.number, finished);
  const std::string why =
      finished.stopped_early.empty() ? "" : fmt::format(" early, {}", finished.stopped_early);
  return End(contract::kExitOk, fmt::format("finished at step {}{}: weights sha256:{}", step(), why,
                                            finished.weights_sha256));
}

absl::Status RoundRunner::LeaveDrained() {
  RM_RETURN_IF_ERROR(WriteLast());
  context_.events.Send(round_.number, Drained{.step = step()});
  return End(contract::kExitOk, fmt::format("drained at step {}", step()));
}

// Who was asked to go leaves; the others stay where they are and wait for the round without them,
// which resumes from here: no step is repeated. Should the checkpoint fail, only who leaves has
// something to answer for: the others resume from the one before.
absl::Status RoundRunner::Part() {
  if (context_.inbox.draining()) return LeaveDrained();
  const absl::Status written = WriteLast();
  if (!written.ok() && !ending_) return written;
  ending_.reset();
  parted_ = true;
  log::Info("waiting for the round without those who leave", {{"step", step()}});
  return absl::OkStatus();
}

absl::Status RoundRunner::End(int exit_code, const std::string& message) {
  ending_ = Ending{.exit_code = exit_code, .message = message};
  return absl::CancelledError(message);
}

}  // namespace ringmaster::train
