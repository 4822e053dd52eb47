#include "runtime/collectives/nccl/ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster::collectives::nccl {
namespace {

constexpr size_t kLinesBeforeDevices = 4;
constexpr char kMayShare[] = "shares";

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
      "takes one for each rank: start fewer ranks, let each see one of its own, or set {}=1 on all "
      "of them, with which NCCL 2.30 or newer lets them share",
      rank, neighbours.size() == 1 ? "" : "s", fmt::join(neighbours, ", "),
      ranks[rank].devices.size(),
      ranks[rank].devices.empty() ? "CUDA_VISIBLE_DEVICES may hide some"
                                  : fmt::format("{}", fmt::join(ranks[rank].devices, ", ")),
      kShareVariable);
}

// Whether the rank sees a device, and it and all others of its machine may share theirs.
bool MayShareThere(std::span<const RankFacts> ranks, size_t rank) {
  return !ranks[rank].devices.empty() && std::ranges::all_of(ranks, [&](const RankFacts& other) {
    return other.machine != ranks[rank].machine || other.may_share;
  });
}

// Gives each rank a device that no other has, as far as there are any: who comes later may move
// others to another of theirs (augmenting paths, Kuhn's method for the assignment problem).
class Matching {
 public:
  explicit Matching(std::span<const RankFacts> ranks) : ranks_(ranks), chosen_(ranks.size(), 0) {}

  // False: none can be had.
  bool Place(size_t rank) {
    std::set<Device> tried;
    return Place(rank, tried);
  }

  // One that the fewest have.
  void Share(size_t rank) {
    const auto& devices = ranks_[rank].devices;
    const auto least = std::ranges::min_element(devices, {}, [&](const std::string& d) {
      return owners_[{ranks_[rank].machine, d}].size();
    });
    Take(rank, static_cast<size_t>(least - devices.begin()));
  }

  std::vector<Seat> Seats() const {
    std::vector<Seat> seats;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      const size_t ordinal = chosen_[rank];
      seats.push_back({static_cast<int>(ordinal),
                       static_cast<int>(owners_.at(DeviceOf(rank, ordinal)).size())});
    }
    return seats;
  }

 private:
  using Device = std::pair<std::string, std::string>;  // its machine, and its place there

  Device DeviceOf(size_t rank, size_t ordinal) const {
    return {ranks_[rank].machine, ranks_[rank].devices[ordinal]};
  }
  void Take(size_t rank, size_t ordinal) {
    owners_[DeviceOf(rank, ordinal)].push_back(rank);
    chosen_[rank] = ordinal;
  }
  bool Place(size_t rank, std::set<Device>& tried) {
    for (const bool free : {true, false}) {
      for (size_t ordinal = 0; ordinal < ranks_[rank].devices.size(); ++ordinal) {
        const Device device = DeviceOf(rank, ordinal);
        std::vector<size_t>& owners = owners_[device];
        if (owners.empty() != free || !tried.insert(device).second) continue;
        if (!free && !Place(owners.front(), tried)) continue;
        owners.clear();
        Take(rank, ordinal);
        return true;
      }
    }
    return false;
  }

  const std::span<const RankFacts> ranks_;
  std::map<Device, std::vector<size_t>> owners_;
  std::vector<size_t> chosen_;  // ordinals, by rank
};

}  // namespace

std::string ToText(const RankFacts& facts) {
  return fmt::format("{}\n{}\n{}\n{}\n{}{}", OneLine(facts.problem), OneLine(facts.version),
                     OneLine(facts.machine), facts.may_share ? kMayShare : "",
                     fmt::join(facts.devices, "\n"), facts.devices.empty() ? "" : "\n");
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
  return RankFacts{lines[0],
                   lines[1],
                   lines[2],
                   lines[3] == kMayShare,
                   {lines.begin() + kLinesBeforeDevices, lines.end()}};
}

absl::StatusOr<std::vector<Seat>> AssignDevices(std::span<const RankFacts> ranks) {
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
  Matching matching(ranks);
  std::vector<size_t> left;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (!matching.Place(rank)) left.push_back(rank);
  }
  for (const size_t rank : left) {
    if (!MayShareThere(ranks, rank)) return absl::FailedPreconditionError(TooFew(ranks, rank));
    matching.Share(rank);
  }
  return matching.Seats();
}

}  // namespace ringmaster::collectives::nccl
