#include "runtime/collectives/bench/measure.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/collectives/bench/processor_clock.h"
#include "runtime/collectives/bench/workload.h"

namespace ringmaster::collectives::bench {
namespace {

using std::chrono::steady_clock;

// Of two operations that are measured beside one another, each of a call at least.
constexpr int kTurns = 9;

// Puts all ranks' figures together: the mean of the times, the sum of the errors, the slowest
// processor.
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
    sum.step_ns = std::max(sum.step_ns, one.step_ns);
  }
  *timing = sum;
  return absl::OkStatus();
}

// An operation where it reads and writes, and what was measured of it.
struct Measured {
  Workload* workload;
  Place place;
  Timing timing{};
  std::vector<double> turns{};  // seconds of a call
};

absl::Status Repeat(const Measured& one, int calls) {
  for (int i = 0; i < calls; ++i) RM_RETURN_IF_ERROR(one.workload->Call(one.place));
  return absl::OkStatus();
}

absl::Status Verify(Measured* one, int warmup) {
  one->workload->Prepare(one->place);
  RM_RETURN_IF_ERROR(one->workload->Call(one->place));
  one->timing.wrong = one->workload->CountWrong(one->place);
  one->workload->Clear(one->place);
  return Repeat(*one, warmup);
}

absl::Status TakeTurn(Communicator& communicator, Measured* one, int calls) {
  RM_RETURN_IF_ERROR(communicator.Barrier("start"));
  const auto start = steady_clock::now();
  RM_RETURN_IF_ERROR(Repeat(*one, calls));
  const std::chrono::duration<double> passed = steady_clock::now() - start;
  one->turns.push_back(passed.count() / calls);
  return absl::OkStatus();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Together they take `turns` turns each, which share the point's calls. Of several, each turn
// begins with a call that does not count: it finds the caches as another one's turn has left them.
absl::Status MeasureInTurns(Communicator& communicator, std::span<Measured> all,
                            const Options& options, const Point& point, int turns) {
  for (Measured& one : all)
    RM_RETURN_IF_ERROR(Verify(&one, std::min(options.warmup, point.iterations)));
  const int calls = std::max(1, point.iterations / turns);
  const double before = StepNanoseconds();
  for (int turn = 0; turn < turns; ++turn) {
    for (Measured& one : all) {
      if (all.size() > 1) RM_RETURN_IF_ERROR(Repeat(one, 1));
      RM_RETURN_IF_ERROR(TakeTurn(communicator, &one, calls));
    }
  }
  // Another rank may need this one's processor for its last call.
  RM_RETURN_IF_ERROR(communicator.Barrier("end"));
  const double step_ns = std::max(before, StepNanoseconds());
  for (Measured& one : all) {
    one.timing.seconds = Median(one.turns);
    one.timing.step_ns = step_ns;
    RM_RETURN_IF_ERROR(Combine(communicator, &one.timing));
  }
  return absl::OkStatus();
}

Measured UsualPlaceOf(Workload& workload) {
  return {&workload, workload.out_of_place() ? *workload.out_of_place() : *workload.in_place()};
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
  if (!options.beside.empty()) {
    Options other = options;
    other.op = options.beside;
    RM_ASSIGN_OR_RETURN(Workload beside, Workload::Create(communicator, other, point.bytes));
    std::array both = {UsualPlaceOf(workload), UsualPlaceOf(beside)};
    RM_RETURN_IF_ERROR(MeasureInTurns(communicator, both, options, point, kTurns));
    (workload.out_of_place() ? row.out_of_place : row.in_place) = both[0].timing;
    row.beside = both[1].timing;
    return row;
  }
  const auto measure = [&](const std::optional<Place>& place,
                           std::optional<Timing>* timing) -> absl::Status {
    if (!place) return absl::OkStatus();
    Measured alone{&workload, *place};
    RM_RETURN_IF_ERROR(
        MeasureInTurns(communicator, std::span(&alone, 1), options, point, /*turns=*/1));
    *timing = alone.timing;
    return absl::OkStatus();
  };
  RM_RETURN_IF_ERROR(measure(workload.out_of_place(), &row.out_of_place));
  RM_RETURN_IF_ERROR(measure(workload.in_place(), &row.in_place));
  return row;
}

}  // namespace ringmaster::collectives::bench
