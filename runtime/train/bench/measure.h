// Times the trainer's own step.
#ifndef RINGMASTER_RUNTIME_TRAIN_BENCH_MEASURE_H_
#define RINGMASTER_RUNTIME_TRAIN_BENCH_MEASURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/train/bench/options.h"
#include "runtime/train/step_profile.h"

namespace ringmaster::train::bench {

// Part of the steps that were profiled: a class of ops (forward and backward of conv2d, say), or
// what a step does beside the network.
struct Share {
  std::string what;
  double seconds = 0;  // of one step, the mean
};

struct Result {
  int64_t parameters = 0;
  std::vector<int> cores;  // of each thread where they are bound; else empty
  // From the configuration to the end of the first step, less a median step: the graph, kernels,
  // memory and initial weights.
  double compile_seconds = 0;
  // Of these, what the first step took longer than a median one: most of it is the system's, which
  // has to find the memory that is written to for the first time.
  double first_step_extra_seconds = 0;
  int64_t steps = 0;        // that were timed
  double step_seconds = 0;  // their median
  double samples_per_second = 0;
  // The most memory that the process had, everything included.
  uint64_t peak_bytes = 0;
  // The most that any of the timed steps took from the heap, on any thread, in pieces (those that
  // count_allocations.h counts).
  int64_t most_allocations = 0;
  // Taken after the timing, for looking at the clock takes time.
  StepProfile profile;
  std::vector<Share> shares;  // of its steps; the largest first
};

// Of an even number of values the mean of the two in the middle. There is at least one.
double Median(std::vector<double> values);

// The class that an op's time is counted under: forward, backward and what is computed again
// together.
std::string ClassOf(const std::string& op);

// Blocks for about options.seconds and a third, at least for a few steps. Errors are the Trial's,
// and those of the trace and the graph where options ask for them.
absl::StatusOr<Result> Measure(const Options& options);

}  // namespace ringmaster::train::bench

#endif  // RINGMASTER_RUNTIME_TRAIN_BENCH_MEASURE_H_
