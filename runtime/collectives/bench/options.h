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
  std::string beside;  // an operation that is measured in turns with it; empty: none
  std::string type = "float";
  std::string redop = "sum";
  int root = 0;
  int shards = 0;  // of the ordered sum; 0: as many as the trainer takes
  std::string transport = "auto";
  bool tls = false;          // encrypts connections
  std::string hosts;         // of the ranks (hosts.h); empty: this machine
  int timeout_seconds = 60;  // how long a rank may be silent while others wait for it
  int ranks = 2;
  size_t min_bytes = 4;
  size_t max_bytes = size_t{256} << 20;
  size_t factor = 2;
  int iterations = 20;
  int warmup = 5;
  std::string points;  // instead of min, max and factor: "4:1000,64K"
  bool json = false;
};

// One line of the table.
struct Point {
  size_t bytes = 0;
  int iterations = 0;
};

// "4", "64K", "256M", "1G", in powers of 1024. kInvalidArgument: anything else, or above 16G.
absl::StatusOr<size_t> ParseSize(const std::string& text);

// `points`, each "SIZE" or "SIZE:CALLS"; or else min, min * factor, ... up to max.
// kInvalidArgument: max is less than min, or a point is none.
absl::StatusOr<std::vector<Point>> Points(const Options& options);

}  // namespace ringmaster::collectives::bench

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_BENCH_OPTIONS_H_
