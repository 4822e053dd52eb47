// Steps as a picture: for ui.perfetto.dev or chrome://tracing, op by op.
#ifndef RINGMASTER_RUNTIME_TRAIN_STEP_TRACE_H_
#define RINGMASTER_RUNTIME_TRAIN_STEP_TRACE_H_

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "runtime/train/lone_worker.h"

namespace ringmaster::train {

struct TraceOptions {
  std::filesystem::path file;
  std::string title;  // what the picture is of
  int steps = 1;
};

// Has the worker take steps and writes them to the file, whose folders are made: the track "step"
// has their phases (compute, the sum over the worker, and commit, which is the optimizer and all
// else that lasts), "forward" and "backward" have the ops inside of compute, each with its kernel,
// of one shard after another. Times count from the begin, in microseconds. After the worker's first
// step. Errors are the steps' and those of files.
absl::Status WriteTrace(LoneWorker& worker, const TraceOptions& options);

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_STEP_TRACE_H_
