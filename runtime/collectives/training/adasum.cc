#include "runtime/collectives/training/adasum.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "common/check.h"
#include "common/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/pieces.h"

namespace ringmaster::collectives {
namespace {

constexpr size_t kBlockValues = 1024;

// The plan's additions by how far up the tree they are: those of one level do not depend on one
// another.
std::vector<std::vector<Addition>> Levels(const std::vector<Addition>& plan, size_t nodes) {
  std::vector<size_t> height(nodes);
  std::vector<std::vector<Addition>> levels;
  for (const Addition& addition : plan) {
    size_t& into = height[static_cast<size_t>(addition.into)];
    const size_t level = std::max(into, height[static_cast<size_t>(addition.from)]);
    if (level == levels.size()) levels.emplace_back();
    levels[level].push_back(addition);
    into = level + 1;
  }
  return levels;
}

}  // namespace

Adasum::Adasum(int shards, size_t elements, std::vector<size_t> tensors)
    : shards_(shards), elements_(elements), tensors_(tensors.size()) {
  RM_CHECK(shards >= 1, "an adasum needs at least one shard");
  RM_CHECK(
      !tensors.empty() && tensors.front() == 0 && std::is_sorted(tensors.begin(), tensors.end()),
      "tensors begin at 0 and in order");
  tensors.push_back(elements);
  for (size_t t = 0; t < tensors_; ++t) {
    for (const Piece& piece : PiecesOf({tensors[t], tensors[t + 1] - tensors[t]}, kBlockValues))
      blocks_.push_back({piece.offset, piece.count, t});
  }
}

size_t Adasum::OffsetOf(size_t block) const {
  return block < blocks_.size() ? blocks_[block].offset : elements_;
}

// Four sums side by side, so that the compiler may keep them in one register without changing the
// order of addition.
Adasum::Dots Adasum::DotsOf(const float* a, const float* b, size_t count) {
  constexpr size_t kLanes = 4;
  double ab[kLanes] = {};
  double aa[kLanes] = {};
  double bb[kLanes] = {};
  for (size_t i = 0; i < count; ++i) {
    const size_t lane = i % kLanes;
    ab[lane] += double{a[i]} * double{b[i]};
    aa[lane] += double{a[i]} * double{a[i]};
    bb[lane] += double{b[i]} * double{b[i]};
  }
  const auto total = [](const double* s) { return (s[0] + s[1]) + (s[2] + s[3]); };
  return {total(ab), total(aa), total(bb)};
}

std::vector<Adasum::Factors> Adasum::FactorsFor(std::span<const Dots> dots) const {
  std::vector<Dots> sums(tensors_);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Dots& sum = sums[blocks_[i].tensor];
    sum.ab += dots[i].ab;
    sum.aa += dots[i].aa;
    sum.bb += dots[i].bb;
  }
  const auto factor = [](double ab, double square) {
    return square > 0 ? 1 - ab / (2 * square) : 1.0;
  };
  std::vector<Factors> factors;
  for (const Dots& sum : sums) factors.push_back({factor(sum.ab, sum.aa), factor(sum.ab, sum.bb)});
  return factors;
}

void Adasum::Join(std::span<const Factors> factors, size_t first, size_t count, float* into,
                  const float* from) const {
  for (size_t i = first; i < first + count; ++i) {
    const Factors factor = factors[blocks_[i].tensor];
    const size_t begin = blocks_[i].offset - OffsetOf(first);
    for (size_t at = begin; at < begin + blocks_[i].count; ++at)
      into[at] = static_cast<float>(factor.a * double{into[at]} + factor.b * double{from[at]});
  }
}

// Shards come in order, so a node's left sibling is always there before it.
absl::Status Adasum::Add(int shard, std::span<const float> values) {
  const int next = nodes_.empty() ? shard : nodes_.rbegin()->first.end;
  if (shard < 0 || shard >= shards_ || shard != next) {
    return absl::InvalidArgumentError(
        fmt::format("shard {} of {} is not the next", shard, shards_));
  }
  if (values.size() != elements_) {
    return absl::InvalidArgumentError(
        fmt::format("shard {} has {} values; the sum is of {}", shard, values.size(), elements_));
  }
  ShardRange node{shard, shard + 1};
  std::vector<float> sum(values.begin(), values.end());
  const ShardRange root{0, shards_};
  while (node != root && !nodes_.empty()) {
    const ShardRange parent = ParentNode(shards_, node);
    const auto left = std::prev(nodes_.end());
    if (parent.end != node.end || left->first != ShardRange{parent.begin, node.begin}) break;
    std::vector<Dots> dots;
    for (const Block& block : blocks_)
      dots.push_back(DotsOf(&left->second[block.offset], &sum[block.offset], block.count));
    Join(FactorsFor(dots), 0, blocks_.size(), left->second.data(), sum.data());
    sum = std::move(left->second);
    nodes_.erase(left);
    node = parent;
  }
  nodes_.emplace(node, std::move(sum));
  return absl::OkStatus();
}

Adasum::Layout Adasum::LayoutOf(int world) const {
  Layout layout;
  for (int rank = 0; rank < world; ++rank) {
    const auto cover = CoveringNodes(shards_, OwnedShards(shards_, world, rank));
    layout.nodes.insert(layout.nodes.end(), cover.begin(), cover.end());
    layout.nodes_of.push_back(cover.size());
    const Piece slice = SliceOf(blocks_.size(), world, rank);
    layout.slices.push_back(slice);
    layout.values_of.push_back(OffsetOf(slice.offset + slice.count) - OffsetOf(slice.offset));
  }
  return layout;
}

absl::Status Adasum::CheckAdded(Communicator& communicator, std::string_view name) const {
  const auto owned =
      CoveringNodes(shards_, OwnedShards(shards_, communicator.world(), communicator.rank()));
  const auto is_node = [](const auto& entry, const ShardRange& node) {
    return entry.first == node;
  };
  if (std::equal(nodes_.begin(), nodes_.end(), owned.begin(), owned.end(), is_node))
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("{}: rank {} has not added the shards that it owns", name, communicator.rank()));
}

// parts = every rank's nodes for this rank's slice, in shard order.
absl::Status Adasum::ExchangeNodes(Communicator& communicator, const Layout& layout,
                                   std::vector<float>* parts, std::string_view name) const {
  const size_t mine = layout.values_of[static_cast<size_t>(communicator.rank())];
  std::vector<float> send;
  std::vector<size_t> send_counts;
  std::vector<size_t> receive_counts;
  for (size_t rank = 0; rank < layout.slices.size(); ++rank) {
    const size_t offset = OffsetOf(layout.slices[rank].offset);
    const size_t count = layout.values_of[rank];
    for (const auto& [node, values] : nodes_) {
      const auto slice = std::span(values).subspan(offset, count);
      send.insert(send.end(), slice.begin(), slice.end());
    }
    send_counts.push_back(nodes_.size() * count);
    receive_counts.push_back(layout.nodes_of[rank] * mine);
  }
  parts->resize(layout.nodes.size() * mine);
  return communicator.AllToAll(send, send_counts, *parts, receive_counts, name);
}

// One level of the tree: all ranks' dots, then each its slice.
absl::Status Adasum::ClimbLevel(Communicator& communicator, const Layout& layout,
                                std::span<const Addition> level, std::vector<float>* parts,
                                std::string_view name) const {
  const auto me = static_cast<size_t>(communicator.rank());
  const Piece slice = layout.slices[me];
  const auto part = [&](int node) {
    return parts->data() + static_cast<size_t>(node) * layout.values_of[me];
  };
  std::vector<Dots> mine;
  for (const Addition& join : level) {
    for (size_t i = slice.offset; i < slice.offset + slice.count; ++i) {
      const size_t at = blocks_[i].offset - OffsetOf(slice.offset);
      mine.push_back(DotsOf(part(join.into) + at, part(join.from) + at, blocks_[i].count));
    }
  }
  std::vector<size_t> counts;  // bytes; from each rank its slice's dots, join by join
  for (const Piece& other : layout.slices)
    counts.push_back(other.count * level.size() * sizeof(Dots));
  std::vector<Dots> all(blocks_.size() * level.size());
  RM_RETURN_IF_ERROR(communicator.Allgather(std::as_bytes(std::span(mine)), counts,
                                            std::as_writable_bytes(std::span(all)), name));
  for (size_t j = 0; j < level.size(); ++j) {
    std::vector<Dots> dots;
    for (const Piece& other : layout.slices) {
      const auto of_rank =
          std::span(all).subspan(other.offset * level.size() + j * other.count, other.count);
      dots.insert(dots.end(), of_rank.begin(), of_rank.end());
    }
    Join(FactorsFor(dots), slice.offset, slice.count, part(level[j].into), part(level[j].from));
  }
  return absl::OkStatus();
}

absl::Status Adasum::Reduce(Communicator& communicator, std::span<float> out,
                            std::string_view name) {
  if (out.size() != elements_ || communicator.world() > shards_) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} values on {} ranks; the sum is of {} values and {} shards", name,
                    out.size(), communicator.world(), elements_, shards_));
  }
  return communicator.Guard(name, [&] { return JoinAll(communicator, out, name); });
}

absl::Status Adasum::JoinAll(Communicator& communicator, std::span<float> out,
                             std::string_view name) const {
  RM_RETURN_IF_ERROR(CheckAdded(communicator, name));
  const Layout layout = LayoutOf(communicator.world());
  std::vector<float> parts;
  RM_RETURN_IF_ERROR(ExchangeNodes(communicator, layout, &parts, name));
  for (const auto& level : Levels(CombiningPlan(shards_, layout.nodes), layout.nodes.size()))
    RM_RETURN_IF_ERROR(ClimbLevel(communicator, layout, level, &parts, name));
  const size_t mine = layout.values_of[static_cast<size_t>(communicator.rank())];
  return communicator.Allgather(std::span<const float>(parts.data(), mine), layout.values_of, out,
                                name);
}

}  // namespace ringmaster::collectives
