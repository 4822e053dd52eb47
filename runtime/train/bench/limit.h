// What a step of a network takes at least in oneDNN: its convolutions and matrix products alone.
#ifndef RINGMASTER_RUNTIME_TRAIN_BENCH_LIMIT_H_
#define RINGMASTER_RUNTIME_TRAIN_BENCH_LIMIT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/train/bench/options.h"

namespace ringmaster::train::bench {

// Nodes of the step that are alike.
struct LimitPart {
  std::string op;
  std::string shapes;  // of the inputs and the output: "[32, 64, 56, 56] x [64, 64, 1, 1] -> [...]"
  std::string implementation;
  int64_t count = 0;
  double seconds = 0;  // of one, the median
};

struct Limit {
  double step_seconds = 0;  // of all together
  double samples_per_second = 0;
  std::vector<LimitPart> parts;  // what takes longest first
};

// Times each kind of convolution and matrix product of the step, forward and backward, by itself,
// with operands in the layouts that oneDNN likes best (kernels/ideal.h). Fixes the thread count;
// errors are those of building the network, kInvalidArgument for a network that has neither,
// kUnimplemented where oneDNN lacks one of them, and, before anything is timed, kResourceExhausted
// where the operands of one need more memory than there is.
absl::StatusOr<Limit> MeasureLimit(const Options& options);

}  // namespace ringmaster::train::bench

#endif  // RINGMASTER_RUNTIME_TRAIN_BENCH_LIMIT_H_
