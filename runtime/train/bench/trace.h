// One step as a picture: for ui.perfetto.dev or chrome://tracing, op by op.
#ifndef RINGMASTER_RUNTIME_TRAIN_BENCH_TRACE_H_
#define RINGMASTER_RUNTIME_TRAIN_BENCH_TRACE_H_

#include "absl/status/status.h"
#include "runtime/train/bench/options.h"
#include "runtime/train/bench/trial.h"

namespace ringmaster::train::bench {

// Takes a step and writes it to options.trace, whose folders are made: the track "step" has its
// phases (compute, the sum over the worker, and commit, which is the optimizer and all else that
// lasts), "forward" and "backward" have the ops inside of compute, each with its kernel. Times
// count from the begin, in microseconds. After the trial's first step. Errors are the step's and
// those of files.
absl::Status WriteTrace(Trial& trial, const Options& options);

}  // namespace ringmaster::train::bench

#endif  // RINGMASTER_RUNTIME_TRAIN_BENCH_TRACE_H_
