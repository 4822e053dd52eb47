#include "runtime/collectives/training/adasum.h"

#include <algorithm>
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

void Adasum::FindFactors() {
  tensor_dots_.assign(tensors_, {});
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Dots& sum = tensor_dots_[blocks_[i].tensor];
    sum.ab += dots_[i].ab;
    sum.aa += dots_[i].aa;
    sum.bb += dots_[i].bb;
  }
  const auto factor = [](double ab, double square) {
    return square > 0 ? 1 - ab / (2 * square) : 1.0;
  };
  factors_.clear();
  for (const Dots& sum : tensor_dots_)
    factors_.push_back({factor(sum.ab, sum.aa), factor(sum.ab, sum.bb)});
}

void Adasum::Join(size_t first, size_t count, float* into, const float* from) const {
  for (size_t i = first; i < first + count; ++i) {
    const Factors factor = factors_[blocks_[i].tensor];
    const size_t begin = blocks_[i].offset - OffsetOf(first);
    for (size_t at = begin; at < begin + blocks_[i].count; ++at)
      into[at] = static_cast<float>(factor.a * double{into[at]} + factor.b * double{from[at]});
  }
}

// Shards come in order, so a node's left sibling is always there before it.
absl::Status Adasum::Add(int shard, std::span<const float> values) {
  const int next = nodes_.empty() ? shard : nodes_.back().range.end;
  if (shard < 0 || shard >= shards_ || shard != next) {
    return absl::InvalidArgumentError(
        fmt::format("shard {} of {} is not the next", shard, shards_));
  }
  if (values.size() != elements_) {
    return absl::InvalidArgumentError(
        fmt::format("shard {} has {} values; the sum is of {}", shard, values.size(), elements_));
  }
  ShardRange node{shard, shard + 1};
  std::vector<float> sum = CopyToBuffer(values);
  const ShardRange root{0, shards_};
  while (node != root && !nodes_.empty()) {
    const ShardRange parent = ParentNode(shards_, node);
    Node& left = nodes_.back();
    if (parent.end != node.end || left.range != ShardRange{parent.begin, node.begin}) break;
    dots_.clear();
    for (const Block& block : blocks_)
      dots_.push_back(DotsOf(&left.values[block.offset], &sum[block.offset], block.count));
    free_.reserve(free_.size() + 1);  // nothing fails once a sum has left its node
    FindFactors();
    Join(0, blocks_.size(), left.values.data(), sum.data());
    sum.swap(left.values);
    free_.push_back(std::move(left.values));
    nodes_.pop_back();
    node = parent;
  }
  nodes_.push_back({node, std::move(sum)});
  return absl::OkStatus();
}

std::vector<float> Adasum::CopyToBuffer(std::span<const float> values) {
  std::vector<float> buffer;
  if (!free_.empty()) {
    buffer = std::move(free_.back());
    free_.pop_back();
  }
  buffer.assign(values.begin(), values.end());
  return buffer;
}

void Adasum::Clear() {
  for (Node& node : nodes_) free_.push_back(std::move(node.values));
  nodes_.clear();
}

Adasum::Plan Adasum::PlanFor(int world, int rank) const {
  const auto nodes_of = [&](int of) {
    return CoveringNodes(shards_, OwnedShards(shards_, world, of));
  };
  const auto slice_of = [&](int of) { return SliceOf(blocks_.size(), world, of); };
  const auto values_of = [&](int of) {
    const Piece slice = slice_of(of);
    return OffsetOf(slice.offset + slice.count) - OffsetOf(slice.offset);
  };
  Plan plan{.world = world, .rank = rank, .own = nodes_of(rank)};
  for (int other = 0; other < world; ++other) {
    const auto nodes = nodes_of(other);
    plan.nodes.insert(plan.nodes.end(), nodes.begin(), nodes.end());
    plan.slices.push_back(slice_of(other));
    plan.values_of.push_back(values_of(other));
    plan.send_counts.push_back(plan.own.size() * values_of(other));
    plan.receive_counts.push_back(nodes.size() * values_of(rank));
  }
  plan.levels = Levels(CombiningPlan(shards_, plan.nodes), plan.nodes.size());
  return plan;
}

size_t Adasum::bytes(int world, int rank) const {
  const Plan plan = PlanFor(world, rank);
  const size_t joined = MostSums(shards_, OwnedShards(shards_, world, rank)) + 1;  // and the next
  const size_t sent = plan.own.size();
  const size_t of_slice = plan.nodes.size() * plan.values_of[static_cast<size_t>(rank)];
  return sizeof(float) * ((joined + sent) * elements_ + of_slice);
}

absl::Status Adasum::CheckAdded(std::string_view name) const {
  if (std::ranges::equal(nodes_, plan_->own, {}, &Node::range)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("{}: rank {} has not added the shards that it owns", name, plan_->rank));
}

absl::Status Adasum::ExchangeNodes(Communicator& communicator, std::string_view name) {
  send_.clear();
  for (size_t rank = 0; rank < plan_->slices.size(); ++rank) {
    const size_t offset = OffsetOf(plan_->slices[rank].offset);
    for (const Node& node : nodes_) {
      const auto slice = std::span(node.values).subspan(offset, plan_->values_of[rank]);
      send_.insert(send_.end(), slice.begin(), slice.end());
    }
  }
  parts_.resize(plan_->nodes.size() * plan_->values_of[static_cast<size_t>(plan_->rank)]);
  return communicator.AllToAll(send_, plan_->send_counts, parts_, plan_->receive_counts, name);
}

// One level of the tree: all ranks' dots, then each its slice.
absl::Status Adasum::ClimbLevel(Communicator& communicator, std::span<const Addition> level,
                                std::string_view name) {
  const auto me = static_cast<size_t>(plan_->rank);
  const Piece slice = plan_->slices[me];
  const auto part = [&](int node) {
    return parts_.data() + static_cast<size_t>(node) * plan_->values_of[me];
  };
  own_dots_.clear();
  for (const Addition& join : level) {
    for (size_t i = slice.offset; i < slice.offset + slice.count; ++i) {
      const size_t at = blocks_[i].offset - OffsetOf(slice.offset);
      own_dots_.push_back(DotsOf(part(join.into) + at, part(join.from) + at, blocks_[i].count));
    }
  }
  dots_counts_.clear();  // from each rank its slice's dots, join by join
  for (const Piece& other : plan_->slices)
    dots_counts_.push_back(other.count * level.size() * sizeof(Dots));
  all_dots_.resize(blocks_.size() * level.size());
  RM_RETURN_IF_ERROR(communicator.Allgather(std::as_bytes(std::span(own_dots_)), dots_counts_,
                                            std::as_writable_bytes(std::span(all_dots_)), name));
  for (size_t j = 0; j < level.size(); ++j) {
    dots_.clear();
    for (const Piece& other : plan_->slices) {
      const auto of_rank =
          std::span(all_dots_).subspan(other.offset * level.size() + j * other.count, other.count);
      dots_.insert(dots_.end(), of_rank.begin(), of_rank.end());
    }
    FindFactors();
    Join(slice.offset, slice.count, part(level[j].into), part(level[j].from));
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
                             std::string_view name) {
  const int world = communicator.world();
  const int rank = communicator.rank();
  if (!plan_ || plan_->world != world || plan_->rank != rank) plan_ = PlanFor(world, rank);
  RM_RETURN_IF_ERROR(CheckAdded(name));
  RM_RETURN_IF_ERROR(ExchangeNodes(communicator, name));
  for (const auto& level : plan_->levels) RM_RETURN_IF_ERROR(ClimbLevel(communicator, level, name));
  const auto whole =
      std::span<const float>(parts_).first(plan_->values_of[static_cast<size_t>(rank)]);
  return communicator.Allgather(whole, plan_->values_of, out, name);
}

}  // namespace ringmaster::collectives
