#include "runtime/collectives/bench/measure.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

namespace ringmaster::collectives::bench {
namespace {

using std::chrono::steady_clock;

constexpr char kName[] = "bench";

// Small integers, so that every order of addition gives the same.
float ValueOf(int rank, size_t i) {
  return static_cast<float>((i * 7 + static_cast<size_t>(rank) * 3) % 8);
}

std::vector<float> InputOf(int rank, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = ValueOf(rank, i);
  return values;
}

uint64_t CountWrong(const std::vector<float>& result, int world) {
  uint64_t wrong = 0;
  for (size_t i = 0; i < result.size(); ++i) {
    float want = 0;
    for (int rank = 0; rank < world; ++rank) want += ValueOf(rank, i);
    wrong += result[i] != want ? 1 : 0;
  }
  return wrong;
}

absl::StatusOr<double> Time(Communicator& communicator, const Options& options,
                            const std::function<absl::Status()>& call) {
  for (int i = 0; i < options.warmup; ++i) RM_RETURN_IF_ERROR(call());
  RM_RETURN_IF_ERROR(communicator.Barrier("start"));
  const auto start = steady_clock::now();
  for (int i = 0; i < options.iterations; ++i) RM_RETURN_IF_ERROR(call());
  const std::chrono::duration<double> passed = steady_clock::now() - start;
  return passed.count() / options.iterations;
}

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

}  // namespace

absl::StatusOr<Row> Measure(Communicator& communicator, const Options& options, size_t bytes) {
  Row row;
  row.count = bytes / sizeof(float);
  row.bytes = row.count * sizeof(float);
  const std::vector<float> in = InputOf(communicator.rank(), row.count);
  std::vector<float> out(row.count, -1);
  const auto out_of_place = [&] { return communicator.Allreduce(Reduction::kSum, in, out, kName); };
  const auto in_place = [&] { return communicator.Allreduce(Reduction::kSum, out, out, kName); };

  RM_RETURN_IF_ERROR(out_of_place());
  row.out_of_place.wrong = CountWrong(out, communicator.world());
  out = in;
  RM_RETURN_IF_ERROR(in_place());
  row.in_place.wrong = CountWrong(out, communicator.world());

  RM_ASSIGN_OR_RETURN(row.out_of_place.seconds, Time(communicator, options, out_of_place));
  RM_ASSIGN_OR_RETURN(row.in_place.seconds, Time(communicator, options, in_place));
  RM_RETURN_IF_ERROR(Combine(communicator, &row.out_of_place));
  RM_RETURN_IF_ERROR(Combine(communicator, &row.in_place));
  return row;
}

}  // namespace ringmaster::collectives::bench
