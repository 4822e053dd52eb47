#include "runtime/collectives/bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "runtime/collectives/bench/workload.h"

namespace ringmaster::collectives::bench {
namespace {

using std::chrono::steady_clock;

// Puts all ranks' figures together: the mean of the times, the sum of the errors.
absl::Status Combine(Communicator& communicator, Timing* timing) {
  RM_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      communicator.AllgatherBytes(std::as_bytes(std::span(timing, 1)), "figures"));
  Timing sum;
  for (const std::string& theirs : all) {
    Timing one;
    if (theirs.size() != sizeof(one)) return absl::DataLossError("a rank's figures are torn");
    std::memcpy(&one, theirs.data(), sizeof(one));
    sum.seconds += one.seconds / static_cast<double>(all.size());
    sum.wrong += one.wrong;
  }
  *timing = sum;
  return absl::OkStatus();
}

absl::StatusOr<Timing> MeasurePlace(Communicator& communicator, Workload& workload,
                                    const Place& place, int warmup, int iterations) {
  Timing timing;
  workload.Prepare(place);
  RM_RETURN_IF_ERROR(workload.Call(place));
  timing.wrong = workload.CountWrong(place);
  workload.Clear(place);
  for (int i = 0; i < warmup; ++i) RM_RETURN_IF_ERROR(workload.Call(place));
  RM_RETURN_IF_ERROR(communicator.Barrier("start"));
  const auto start = steady_clock::now();
  for (int i = 0; i < iterations; ++i) RM_RETURN_IF_ERROR(workload.Call(place));
  const std::chrono::duration<double> passed = steady_clock::now() - start;
  timing.seconds = passed.count() / iterations;
  RM_RETURN_IF_ERROR(Combine(communicator, &timing));
  return timing;
}

}  // namespace

absl::StatusOr<Row> Measure(Communicator& communicator, const Options& options,
                            const Point& point) {
  RM_ASSIGN_OR_RETURN(Workload workload, Workload::Create(communicator, options, point.bytes));
  Row row;
  row.bytes = workload.bytes();
  row.count = workload.count();
  row.type = options.type;
  row.redop = Reduces(options.op) ? options.redop : options.op == "ordered-sum" ? "sum" : "none";
  row.root = HasRoot(options.op) ? options.root : -1;
  const int warmup = std::min(options.warmup, point.iterations);
  const auto measure = [&](const std::optional<Place>& place,
                           std::optional<Timing>* timing) -> absl::Status {
    if (!place) return absl::OkStatus();
    RM_ASSIGN_OR_RETURN(*timing,
                        MeasurePlace(communicator, workload, *place, warmup, point.iterations));
    return absl::OkStatus();
  };
  RM_RETURN_IF_ERROR(measure(workload.out_of_place(), &row.out_of_place));
  RM_RETURN_IF_ERROR(measure(workload.in_place(), &row.in_place));
  return row;
}

}  // namespace ringmaster::collectives::bench
