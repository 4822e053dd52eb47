// Communicator::Fit: the cost model's numbers of one round, measured by its own ranks.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>

#include "common/status.h"
#include "runtime/collectives/add.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/node_map.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/reduce.h"
#include "runtime/collectives/transport/shm/segment.h"

namespace ringmaster::collectives {
namespace {

using std::chrono::steady_clock;

constexpr int kSmallTries = 6;
constexpr int kSteps = 8;
constexpr int kLargeTries = 2;
constexpr int kLargeSteps = 4;
constexpr int kCombiningTries = 4;
constexpr int kBurst = 8;
constexpr size_t kLargeBytes = 256 * 1024;
constexpr size_t kSumBytes = 1024 * 1024;
constexpr size_t kInARow = 5;            // sums of so much
constexpr size_t kRows = 4;              // of each of two algorithms
constexpr size_t kSlowRows = 1;          // for a slow link is not to be kept busy for long
constexpr double kSlow = 1e-3;           // for kLargeBytes
constexpr size_t kCombined = 16 * 1024;  // numbers
// Ranks that have just started may share a processor for some milliseconds, until the system has
// moved one of them: a message then takes as long as the one that waits keeps the other from
// running. No link within a node is as slow as that, so it is measured again.
constexpr int kTurns = 3;
constexpr int kMostTurns = 10;
constexpr double kSlowerThanAnyNode = 60e-6;
// A clock's step is longer than what a fast link takes for nothing.
constexpr double kLeast = 1e-9;

// Seconds of a step with one small message, with a burst of them and with a large one; 0 where
// there is no such link.
struct LinkTimes {
  double one = 0;
  double burst = 0;
  double large = 0;
};

// What a rank finds out about its links and its core.
struct Measured {
  LinkTimes within;
  LinkTimes between;
  double combining = 0;  // of a byte

  static constexpr size_t kNumbers = 7;
  std::array<double, kNumbers> numbers() const {
    return {within.one,    within.burst,  within.large, between.one,
            between.burst, between.large, combining};
  }
  static Measured Of(const std::array<double, kNumbers>& n) {
    return {{n[0], n[1], n[2]}, {n[3], n[4], n[5]}, n[6]};
  }
};

double Since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

// `messages` of `bytes` to the next of `ranks`, and as many from the one before, `steps` times,
// each after the other's; seconds of a step.
absl::StatusOr<double> Shift(Transport& transport, std::span<const int> ranks, int steps,
                             int messages, std::span<std::byte> out, std::span<std::byte> in) {
  const int count = static_cast<int>(ranks.size());
  const auto self = std::find(ranks.begin(), ranks.end(), transport.rank());
  const int place = static_cast<int>(self - ranks.begin());
  const int next = ranks[static_cast<size_t>(RingRank(place, 1, count))];
  const int previous = ranks[static_cast<size_t>(RingRank(place, -1, count))];
  const auto start = steady_clock::now();
  for (int step = 0; step < steps; ++step) {
    Receipt last;
    for (int i = 0; i < messages; ++i) {
      last = transport.PostReceive(previous, in);
      transport.PostSend(next, out);
    }
    RM_RETURN_IF_ERROR(transport.Wait(last));
  }
  return Since(start) / steps;
}

absl::StatusOr<double> Least(Transport& transport, std::span<const int> ranks, int tries, int steps,
                             int messages, std::span<std::byte> out, std::span<std::byte> in) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < tries; ++i) {
    RM_ASSIGN_OR_RETURN(const double time, Shift(transport, ranks, steps, messages, out, in));
    least = std::min(least, time);
  }
  return least;
}

absl::Status MeasureRing(Transport& transport, std::span<const int> ranks, LinkTimes* times) {
  *times = {};
  if (ranks.size() < 2) return absl::OkStatus();
  if (std::find(ranks.begin(), ranks.end(), transport.rank()) == ranks.end())
    return absl::OkStatus();
  std::vector<std::byte> out(kLargeBytes);
  std::vector<std::byte> in(kLargeBytes);
  const auto small_out = std::span(out).first(1);
  const auto small_in = std::span(in).first(1);
  // Several steps, for a single message is often there before this rank asks for it, a large one
  // too where ranks share processors.
  RM_ASSIGN_OR_RETURN(times->one,
                      Least(transport, ranks, kSmallTries, kSteps, 1, small_out, small_in));
  RM_ASSIGN_OR_RETURN(times->burst,
                      Least(transport, ranks, kSmallTries, kSteps, kBurst, small_out, small_in));
  RM_ASSIGN_OR_RETURN(times->large, Least(transport, ranks, kLargeTries, kLargeSteps, 1, out, in));
  return transport.Finish();  // `out` is sent from until then
}

LinkCost CostOf(const LinkTimes& times) {
  LinkCost link;
  link.alpha = std::max(times.one, kLeast);
  link.overhead = std::clamp((times.burst - times.one) / (kBurst - 1), kLeast, link.alpha);
  link.beta =
      std::max((times.large - times.one) / static_cast<double>(kLargeBytes), kLeast * kLeast);
  return link;
}

// Seconds of an allreduce of a megabyte by each of two algorithms: the median, for what counts is
// how it usually is. Several by one follow one another, as in training; the first of a row begins
// as another algorithm has left the ranks, and does not count, nor does the first row, over
// connections that have carried little yet.
using TwoAlgorithms = std::array<Algorithm, 2>;
absl::Status MeasureSums(Transport& transport, const TwoAlgorithms& algorithms,
                         size_t segment_bytes, size_t rows, std::array<double, 2>& seconds) {
  const std::vector<float> in(kSumBytes / sizeof(float));
  std::vector<float> out(in.size());
  std::array<std::vector<double>, 2> times;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < algorithms.size(); ++i) {
      const Method method{.algorithm = algorithms[i],
                          .segment_bytes = segment_bytes,
                          .direct_piece_bytes = segment_bytes};
      if (row == 1) times[i].clear();
      for (size_t sum = 0; sum < kInARow; ++sum) {
        const auto start = steady_clock::now();
        RM_RETURN_IF_ERROR(
            Allreduce(transport, method, Reduction::kSum, ConstElements(in), Elements(out)));
        if (sum > 0) times[i].push_back(Since(start));
      }
    }
  }
  for (size_t i = 0; i < algorithms.size(); ++i) {
    const auto middle = times[i].begin() + std::ssize(times[i]) / 2;
    std::nth_element(times[i].begin(), middle, times[i].end());
    seconds[i] = *middle;
  }
  return transport.Finish();  // `in` and `out` are sent from until then
}

double MeasureCombining() {
  const std::vector<float> left(kCombined, 1.0f);
  const std::vector<float> right(kCombined, 2.0f);
  std::vector<float> sum(kCombined);
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kCombiningTries; ++i) {
    const auto start = steady_clock::now();
    Add(sum.data(), left.data(), right.data(), kCombined);
    least = std::min(least, Since(start));
  }
  return std::max(least / static_cast<double>(kCombined * sizeof(float)), kLeast * kLeast);
}

// The ranks of a node shift small and large messages around a ring, all at once, as an algorithm's
// step does; then the first ranks of the nodes do.
absl::Status Measure(Transport& transport, const NodeMap& nodes, Measured* measured) {
  measured->combining = MeasureCombining();
  const auto inside = nodes.ranks_of(nodes.node_of(transport.rank()));
  std::vector<int> leaders;
  for (int node = 0; node < nodes.nodes(); ++node) leaders.push_back(nodes.ranks_of(node).front());
  RM_RETURN_IF_ERROR(MeasureRing(transport, inside, &measured->within));
  return MeasureRing(transport, leaders, &measured->between);
}

// What tells this process's machine from others, and the memory that its processes can share: of
// containers of one machine each may have its own, and then they share none.
std::string MachineName() {
  struct stat memory {};
  const std::string machine = shm::MachineId();
  if (machine.empty() || ::stat("/dev/shm", &memory) != 0) return "";
  return fmt::format("{}/{}", machine, memory.st_dev);
}

}  // namespace

// Every number is the worst of all ranks, for the slowest link paces a step, in the best of several
// turns, so that what else the machine does counts little. All ranks have the same numbers, and so
// agree on how many turns there are.
absl::Status Communicator::Fit(std::string_view machine) {
  const std::string name = machine.empty() ? MachineName() : std::string(machine);
  RM_ASSIGN_OR_RETURN(const auto machines,
                      AllgatherBytes(std::as_bytes(std::span(name)), "machines"));
  const NodeMap nodes(machines);
  Operation operation;
  operation.kind = OperationKind::kBarrier;
  operation.name = "links";
  std::array<double, Measured::kNumbers> least{};
  for (int turn = 0;
       turn < kTurns || (turn < kMostTurns && Measured::Of(least).within.one > kSlowerThanAnyNode);
       ++turn) {
    Measured mine;
    RM_RETURN_IF_ERROR(Run(operation, [&](Transport& t) { return Measure(t, nodes, &mine); }));
    std::array<double, Measured::kNumbers> worst = mine.numbers();
    RM_RETURN_IF_ERROR(Allreduce(Reduction::kMax, worst, worst, "links"));
    for (size_t i = 0; i < worst.size(); ++i)
      least[i] = turn == 0 ? worst[i] : std::min(least[i], worst[i]);
  }
  const Measured measured = Measured::Of(least);
  // A rank that shares memory with any is taken to share it with all of its machine: where it does
  // not, the numbers are a little off, the same for all.
  const bool alone = nodes.ranks_of(nodes.node_of(rank())).size() == 1;
  std::array<double, 1> apart = {alone || stats().sharing_peers > 0 ? 0.0 : 1.0};
  RM_RETURN_IF_ERROR(Allreduce(Reduction::kMax, apart, apart, "links"));
  const bool shares_memory = nodes.nodes() < world() && apart[0] == 0;
  CostModel model;
  if (measured.within.one > 0) model.within = CostOf(measured.within);
  if (measured.between.one > 0) model.between = CostOf(measured.between);
  model.within.again = shares_memory ? CostModel::kReadAgain : 1;
  model.gamma = measured.combining;
  // What these numbers leave out. (Ranks that share memory see one another's bytes as they come.)
  const Shape shape = nodes.shape();
  const bool halves = world() > 2 && shape.nodes == 1 && std::has_single_bit(unsigned(world()));
  if (!shares_memory && (world() == 2 || halves)) {
    const auto predicted = [&](Algorithm algorithm) {
      return Predict(model, OperationKind::kAllreduce, algorithm, kSumBytes, shape,
                     segment_bytes());
    };
    TwoAlgorithms ways = {Algorithm::kDirect, Algorithm::kDoubling};
    if (halves) {
      const bool ring = predicted(Algorithm::kRing) < predicted(Algorithm::kDirect);
      ways = {ring ? Algorithm::kRing : Algorithm::kDirect, Algorithm::kHalvingDoubling};
    }
    const LinkTimes& times = shape.nodes == 1 ? measured.within : measured.between;
    const size_t rows = times.large > kSlow ? kSlowRows : kRows;
    std::array<double, 2> seconds{};
    RM_RETURN_IF_ERROR(Run(operation, [&](Transport& t) {
      return MeasureSums(t, ways, segment_bytes(), rows, seconds);
    }));
    // The mean of all ranks: who is late in the one exchange is early in the other.
    RM_RETURN_IF_ERROR(Allreduce(Reduction::kAverage, seconds, seconds, "links"));
    const double longer = (seconds[0] - predicted(ways[0])) - (seconds[1] - predicted(ways[1]));
    LinkCost& link = shape.nodes == 1 ? model.within : model.between;
    if (halves)
      link.halves = -longer;
    else
      link.turn = longer;
  }
  selector_ = Selector(nodes, model, selector_.segment_bytes(), selector_.forced());
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives
