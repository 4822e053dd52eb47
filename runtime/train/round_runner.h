// RoundRunner: one rank's part in one round, from agreeing where to begin to the end of training or
// of the round.
//
// A step: compute the owned shards, reduce, and only then commit. Whatever all ranks must decide
// alike (a drain, a parting, a checkpoint by time or on request) travels as a flag in the same sum
// as the gradients, so that they find it set after the same step.
#ifndef RINGMASTER_RUNTIME_TRAIN_ROUND_RUNNER_H_
#define RINGMASTER_RUNTIME_TRAIN_ROUND_RUNNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/timeline.h"
#include "runtime/train/checkpointer.h"
#include "runtime/train/ending.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/inbox.h"
#include "runtime/train/options.h"
#include "runtime/train/progress_meter.h"
#include "runtime/train/replica.h"
#include "runtime/train/shard_runner.h"
#include "runtime/train/step_runner.h"

namespace ringmaster::train {

// What a session has for all its rounds. Everything outlives the runner.
struct RoundContext {
  const SessionOptions& options;
  const Workload& workload;
  Replica& replica;
  ShardRunner& shards;
  Evaluator& evaluator;
  Checkpointer& checkpointer;
  Inbox& inbox;
  EventSink& events;
  TrainerMetrics& metrics;
  collectives::Timeline* timeline;  // null: none is kept
  // device::OwnMemory before anything of the model was there.
  std::optional<int64_t> memory_before;
};

// Lives for one Run, on the session's thread.
class RoundRunner {
 public:
  RoundRunner(const RoundContext& context, const Round& round,
              collectives::Communicator& communicator);

  // How the session ends; nothing when it goes on with the next round, because members have parted
  // from this one. Or an error: the communicator's, when the round is over, or one of this rank's
  // own, when the communicator is still whole.
  absl::StatusOr<std::optional<Ending>> Run();

 private:
  absl::Status Train();
  absl::Status AgreeOnWorkload();
  absl::Status MeasureLinks();
  absl::Status Restore();
  absl::Status StartFromBefore();
  absl::Status PrepareSteps();
  absl::Status CheckMemory();
  // What this rank wants of all.
  StepFlags Wanted() const;
  absl::StatusOr<StepFlags> Step();
  absl::Status Commit();
  void WarnOfSkippedStep();
  std::string WhereNonFinite();
  absl::Status Evaluate();
  bool EvaluationIsDue() const;
  bool CheckpointIsDue(const StepFlags& decided) const;
  Duration Patience() const;
  absl::Status WriteLast();
  absl::Status AwaitDurable();
  std::vector<LabelAuroc> LabelsOf(const Evaluation& evaluation) const;
  absl::Status Finish();
  absl::Status LeaveDrained();
  absl::Status Part();
  absl::Status End(int exit_code, const std::string& message);

  int64_t step() const { return static_cast<int64_t>(context_.replica.step()); }
  bool at_last_step() const { return context_.replica.step() >= context_.workload.total_steps(); }
  bool done() const { return at_last_step() || context_.replica.improvement().ShouldStop(); }

  const RoundContext& context_;
  const Round& round_;
  collectives::Communicator& communicator_;
  std::unique_ptr<StepRunner> steps_;
  ProgressMeter meter_;
  collectives::CommunicatorStats counted_;  // of the communicator's, in the metrics
  std::optional<Ending> ending_;
  bool skipped_last_ = false;  // whether the last step was left out
  bool parted_ = false;        // the others go, and this worker waits for the next round
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_ROUND_RUNNER_H_
