#include "runtime/collectives/nccl/ranks.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster::collectives::nccl {
namespace {

constexpr size_t kLinesBeforeDevices = 3;

std::string OneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string TooFew(std::span<const RankFacts> ranks, size_t rank) {
  std::vector<size_t> neighbours;
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].machine == ranks[rank].machine) neighbours.push_back(r);
  }
  return fmt::format(
      "rank {} has no GPU of its own: its machine has rank{} {}, and it sees {} there ({}). NCCL "
      "takes"
      " one for each rank: start fewer ranks, or let each see one of its own",
      rank, neighbours.size() == 1 ? "" : "s", fmt::join(neighbours, ", "),
      ranks[rank].devices.size(),
      ranks[rank].devices.empty() ? "CUDA_VISIBLE_DEVICES may hide some"
                                  : fmt::format("{}", fmt::join(ranks[rank].devices, ", ")));
}

}  // namespace

std::string ToText(const RankFacts& facts) {
  return fmt::format("{}\n{}\n{}\n{}{}", OneLine(facts.problem), OneLine(facts.version),
                     OneLine(facts.machine), fmt::join(facts.devices, "\n"),
                     facts.devices.empty() ? "" : "\n");
}

absl::StatusOr<RankFacts> FactsFromText(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (lines.size() < kLinesBeforeDevices || begin != text.size())
    return absl::DataLossError("what a rank tells of its devices is torn");
  return RankFacts{
      lines[0], lines[1], lines[2], {lines.begin() + kLinesBeforeDevices, lines.end()}};
}

absl::StatusOr<std::vector<int>> AssignDevices(std::span<const RankFacts> ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankFacts& facts = ranks[rank];
    if (!facts.problem.empty()) {
      return absl::FailedPreconditionError(
          fmt::format("rank {} cannot use NCCL: {}", rank, facts.problem));
    }
    if (facts.version != ranks.front().version) {
      return absl::FailedPreconditionError(
          fmt::format("rank 0 has NCCL {}, rank {} has {}: all ranks need the same",
                      ranks.front().version, rank, facts.version));
    }
  }
  std::vector<size_t> order(ranks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t rank) { return ranks[rank].devices.size(); });
  std::set<std::pair<std::string, std::string>> taken;
  std::vector<int> chosen(ranks.size(), 0);
  for (const size_t rank : order) {
    const auto& [problem, version, machine, devices] = ranks[rank];
    const auto free = std::ranges::find_if(devices, [&](const std::string& device) {
      return taken.insert({machine, device}).second;
    });
    if (free == devices.end()) return absl::FailedPreconditionError(TooFew(ranks, rank));
    chosen[rank] = static_cast<int>(free - devices.begin());
  }
  return chosen;
}

}  // namespace ringmaster::collectives::nccl
