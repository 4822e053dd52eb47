// One rank's part of the benchmark.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_BENCH_MEASURE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_BENCH_MEASURE_H_

#include <functional>

#include "runtime/collectives/bench/report.h"
#include "runtime/collectives/communicator.h"

namespace ringmaster::collectives::bench {

// Checks one call against what it must give, out of place and in place, then times the point's
// calls of each after `warmup` others, or as many if that is less. Beside another operation both
// are called in turns, out of place where they can be, each turn of a call at least after one that
// does not count, and the median turn of each counts: what slows the machine for a while then slows
// both. Before the first turn and after the last each rank looks how fast its processor is
// (processor_clock.h). Every rank calls it with the same arguments and gets the same row. Blocks as
// the communicator's operations do.
absl::StatusOr<Row> Measure(Communicator& communicator, const Options& options, const Point& point);

}  // namespace ringmaster::collectives::bench

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_BENCH_MEASURE_H_
