// Checkpointer: when a checkpoint is due, what this rank writes of it, what it tells the operator,
// and which files may go.
//
// Used by the session's thread; its writer reports from a thread of its own.
#ifndef RINGMASTER_RUNTIME_TRAIN_CHECKPOINTER_H_
#define RINGMASTER_RUNTIME_TRAIN_CHECKPOINTER_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "runtime/checkpoint/async_writer.h"
#include "runtime/checkpoint/loader.h"
#include "runtime/train/messages.h"
#include "runtime/train/replica.h"
#include "runtime/train/trainer_metrics.h"

namespace ringmaster::train {

struct CheckpointPlan {
  std::filesystem::path directory;
  std::string job;
  int64_t every_steps = 0;    // 0: not by steps
  int64_t every_seconds = 0;  // 0: not by time
  bool keep_best = false;     // one after each evaluation that is the best so far
  const Clock* clock = &SystemClock();
};

class Checkpointer {
 public:
  // `events` and `metrics` must outlive it.
  Checkpointer(CheckpointPlan plan, EventSink& events, TrainerMetrics& metrics);

  // Checkpoints of this rank from now on belong to `round`; what an earlier one still writes is of
  // no interest any more.
  void StartRound(const Round& round);
  // What the ranks found to load. All of them are in StartRound's round by now, so rank 0 removes
  // what earlier rounds left behind, and sets aside what `round` names and does not load.
  void Restored(const Round& round, std::vector<checkpoint::CheckpointRef> existing);

  // Whether the interval in seconds has passed since the last checkpoint or the round's start. Only
  // rank 0's answer counts.
  bool DueByTime() const;
  // Whether every rank writes one after `step`.
  bool DueBySteps(int64_t step) const;
  // Whether every rank writes one after an evaluation that is the best so far.
  bool keeps_best() const { return plan_.keep_best; }

  // Copies this rank's part and writes it behind the training. Nothing to do when this step's
  // checkpoint was written or exists already. Where the disk does not keep up it waits, at most for
  // `patience`, and then leaves this checkpoint out and says so.
  void Submit(Replica& replica, Duration patience);

  // Waits until this rank's part of `step`'s checkpoint is on disk: kDeadlineExceeded while it is
  // being written or could not be submitted yet, the writer's error when it never will be there.
  absl::Status WaitUntilDurable(int64_t step, Duration timeout);

  // Takes note of what exists; rank 0 deletes what does not any more.
  void OnCommitted(std::span<const CheckpointCommitted> news);
  bool Exists(int64_t step) const;

  const std::vector<checkpoint::CheckpointRef>& existing() const { return existing_; }
  const std::filesystem::path& directory() const { return plan_.directory; }
  // The step of the last part that reached the disk; 0 when none did.
  int64_t last_durable_step() const;

 private:
  void OnWritten(const checkpoint::WriteResult& result);
  std::optional<double> TakeMetricValue(const checkpoint::CheckpointId& id);
  void Failed(const checkpoint::CheckpointId& id, const absl::Status& status);
  void Remove(const checkpoint::CheckpointRef& dropped);
  void SetAside(const Round& round);

  const CheckpointPlan plan_;
  EventSink& events_;
  TrainerMetrics& metrics_;
  int rank_ = 0;
  int world_ = 1;
  std::vector<checkpoint::CheckpointRef> existing_;  // newest first
  SteadyTime last_{};                                // checkpoint, or start of the round
  checkpoint::CheckpointId submitted_{.step = -1};

  mutable std::mutex mutex_;
  int64_t round_ = 0;                // guarded by mutex_ where the writer reads it
  checkpoint::WriteResult written_;  // the last one; guarded by mutex_
  int64_t last_durable_step_ = 0;    // guarded by mutex_
  // Of the job's metric, of what is being written; guarded by mutex_.
  std::map<checkpoint::CheckpointId, double> metric_values_;
  checkpoint::AsyncWriter writer_;  // last: it reports into the members above
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_CHECKPOINTER_H_
