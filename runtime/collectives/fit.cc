#include "runtime/collectives/fit.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>

#include "common/file.h"
#include "common/status.h"
#include "runtime/collectives/add.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives {
namespace {

using std::chrono::steady_clock;

constexpr int kSmallTries = 6;
constexpr int kSteps = 8;
constexpr int kLargeTries = 4;
constexpr int kBurst = 8;
constexpr size_t kLargeBytes = 256 * 1024;
constexpr size_t kCombined = 16 * 1024;  // numbers
// A clock's step is longer than what a fast link takes for nothing.
constexpr double kLeast = 1e-9;

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

absl::Status MeasureRing(Transport& transport, std::span<const int> ranks, LinkCost* link) {
  *link = {0, 0, 0};
  if (ranks.size() < 2) return absl::OkStatus();
  if (std::find(ranks.begin(), ranks.end(), transport.rank()) == ranks.end())
    return absl::OkStatus();
  std::vector<std::byte> out(kLargeBytes);
  std::vector<std::byte> in(kLargeBytes);
  const auto small_out = std::span(out).first(1);
  const auto small_in = std::span(in).first(1);
  // Several steps, for a single message is often there before this rank asks for it.
  RM_ASSIGN_OR_RETURN(const double one,
                      Least(transport, ranks, kSmallTries, kSteps, 1, small_out, small_in));
  RM_ASSIGN_OR_RETURN(const double burst,
                      Least(transport, ranks, kSmallTries, kSteps, kBurst, small_out, small_in));
  RM_ASSIGN_OR_RETURN(const double large, Least(transport, ranks, kLargeTries, 1, 1, out, in));
  RM_RETURN_IF_ERROR(transport.Finish());  // `out` is sent from until then
  link->alpha = std::max(one, kLeast);
  link->overhead = std::clamp((burst - one) / (kBurst - 1), kLeast, link->alpha);
  link->beta = std::max((large - one) / static_cast<double>(kLargeBytes), kLeast * kLeast);
  return absl::OkStatus();
}

double MeasureCombining() {
  const std::vector<float> left(kCombined, 1.0f);
  const std::vector<float> right(kCombined, 2.0f);
  std::vector<float> sum(kCombined);
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kLargeTries; ++i) {
    const auto start = steady_clock::now();
    Add(sum.data(), left.data(), right.data(), kCombined);
    least = std::min(least, Since(start));
  }
  return std::max(least / static_cast<double>(kCombined * sizeof(float)), kLeast * kLeast);
}

}  // namespace

std::string MachineName() {
  struct stat memory {};
  struct stat network {};
  const auto boot = ReadFile("/proc/sys/kernel/random/boot_id");
  if (!boot.ok() || ::stat("/dev/shm", &memory) != 0) return "";
  if (::stat("/proc/self/ns/net", &network) != 0) return "";
  return fmt::format("{}/{}/{}", *boot, memory.st_dev, network.st_ino);
}

absl::Status MeasureLinks(Transport& transport, const NodeMap& nodes, CostModel* model) {
  model->gamma = MeasureCombining();
  const auto inside = nodes.ranks_of(nodes.node_of(transport.rank()));
  std::vector<int> leaders;
  for (int node = 0; node < nodes.nodes(); ++node) leaders.push_back(nodes.ranks_of(node).front());
  RM_RETURN_IF_ERROR(MeasureRing(transport, inside, &model->within));
  return MeasureRing(transport, leaders, &model->between);
}

// Every number is the worst of all ranks: the slowest link paces a step.
absl::Status Communicator::Fit(std::string_view machine) {
  const std::string name = machine.empty() ? MachineName() : std::string(machine);
  RM_ASSIGN_OR_RETURN(const auto machines,
                      AllgatherBytes(std::as_bytes(std::span(name)), "machines"));
  const NodeMap nodes(machines);
  CostModel mine;
  Operation operation;
  operation.kind = OperationKind::kBarrier;
  operation.name = "links";
  RM_RETURN_IF_ERROR(Run(operation, [&](Transport& t) { return MeasureLinks(t, nodes, &mine); }));
  std::vector<double> numbers = {mine.within.alpha,  mine.within.overhead,  mine.within.beta,
                                 mine.between.alpha, mine.between.overhead, mine.between.beta,
                                 mine.gamma};
  RM_RETURN_IF_ERROR(Allreduce(Reduction::kMax, numbers, numbers, "links"));
  CostModel model;
  if (numbers[0] > 0) model.within = {numbers[0], numbers[1], numbers[2]};
  if (numbers[3] > 0) model.between = {numbers[3], numbers[4], numbers[5]};
  model.gamma = numbers[6];
  selector_ = Selector(nodes, model, selector_.segment_bytes(), selector_.forced());
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives
