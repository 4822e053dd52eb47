// What a run of the benchmark measures: the flags of ringmaster-bench-collectives.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_BENCH_OPTIONS_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_BENCH_OPTIONS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ringmaster::collectives::bench {

struct Options {
  std::string op = "allreduce";
  std::string transport = "auto";
  int ranks = 2;
  size_t min_bytes = 4;
  size_t max_bytes = size_t{256} << 20;
  size_t factor = 2;
  int iterations = 20;
  int warmup = 5;
  bool json = false;
};

// "4", "64K", "256M", "1G", in powers of 1024. kInvalidArgument: anything else, or above 16G.
absl::StatusOr<size_t> ParseSize(const std::string& text);

// min, min * factor, ... up to max. kInvalidArgument: max is less than min.
absl::StatusOr<std::vector<size_t>> Sizes(const Options& options);

}  // namespace ringmaster::collectives::bench

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_BENCH_OPTIONS_H_
