#include "runtime/collectives/algorithms/halving_sum.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "runtime/collectives/add.h"
#include "runtime/collectives/algorithms/transfer.h"
#include "runtime/collectives/timeline.h"

namespace ringmaster::collectives {

template <typename T>
absl::Status HalvingSum<T>::Run(Transport& transport, const Contribution<T>& mine, std::span<T> out,
                                size_t segment_bytes) {
  Context run{transport, mine, out, PieceElements(sizeof(T), segment_bytes)};
  // What is queued lies in `out` and in this object, which the next run uses again, so the
  // operation ends here, well or badly.
  const absl::Status status = RunSteps(run);
  return status.ok() ? transport.Finish() : transport.Fail({status, -1});
}

template <typename T>
absl::Status HalvingSum<T>::RunSteps(Context& run) {
  if (!run.mine.knows_owners) RM_RETURN_IF_ERROR(ExchangeOwnership(run));
  RM_RETURN_IF_ERROR(MakePlan(run));
  const int rank = run.transport.rank();
  const std::vector<ShardRange>& own = plan_->cover[static_cast<size_t>(rank)];
  held_.clear();
  for (size_t i = 0; i < own.size(); ++i)
    held_.push_back({own[i], {run.mine.sums[i].data(), nullptr}});
  const std::vector<NodeStep>& steps = plan_->steps;
  for (const NodeStep& step : steps) {
    if (TakesPart(run, step)) RM_RETURN_IF_ERROR(Add(run, step));
  }
  // Where one rank has all shards there are no steps, and it has the sum already.
  if (const Held root = HeldOf({0, run.mine.shards()}); steps.empty() && root.values != nullptr)
    std::copy_n(root.values, run.out.size(), run.out.data());
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (TakesPart(run, *step)) RM_RETURN_IF_ERROR(Spread(run, *step));
  }
  return ServeIdle(run);
}

// Ranks without a shard get the sum from those that have some.
template <typename T>
absl::Status HalvingSum<T>::ServeIdle(Context& run) {
  const Phase phase("serve the idle");
  receipts_.clear();
  const std::vector<int>& owners = plan_->owners;
  const std::vector<int>& idle = plan_->idle;
  for (size_t i = 0; i < idle.size(); ++i) {
    const int server = owners[i % owners.size()];
    if (server == run.transport.rank()) Send(run, idle[i], run.out.data(), {0, run.out.size()});
    if (idle[i] != run.transport.rank()) continue;
    for (const Piece& piece : PiecesOf({0, run.out.size()}, run.segment_elements))
      receipts_.push_back(run.transport.PostReceive(server, WritableBytesOf(run.out, piece)));
  }
  return WaitForAll(run.transport, receipts_);
}

// In step k a rank passes on what it knows of the 2^k ranks from itself on.
template <typename T>
absl::Status HalvingSum<T>::ExchangeOwnership(Context& run) {
  const Phase phase("exchange ownership");
  Transport& transport = run.transport;
  const int world = transport.world();
  const int rank = transport.rank();
  Ownership& owners = run.mine.owners;
  const size_t row = owners.bits(rank).size();
  rows_.resize(row * static_cast<size_t>(world));
  const std::span rows(rows_);
  std::ranges::copy(owners.bits(rank), rows.begin());
  for (int known = 1; known < world; known *= 2) transport.Connect(RingRank(rank, -known, world));
  for (int known = 1; known < world; known *= 2) {
    const size_t bytes = row * static_cast<size_t>(std::min(known, world - known));
    transport.PostSend(RingRank(rank, -known, world), rows.first(bytes));
    const std::span<std::byte> more = rows.subspan(row * static_cast<size_t>(known), bytes);
    RM_RETURN_IF_ERROR(transport.Wait(transport.PostReceive(RingRank(rank, known, world), more)));
  }
  for (int i = 1; i < world; ++i) {
    const int peer = RingRank(rank, i, world);
    std::copy_n(&rows[row * static_cast<size_t>(i)], row, owners.bits(peer).begin());
  }
  return transport.Finish();  // the rows are sent from until then
}

template <typename T>
absl::Status HalvingSum<T>::MakePlan(const Context& run) {
  const size_t elements = run.out.size();
  const Ownership& owners = run.mine.owners;
  if (plan_ && plan_->ownership == owners && plan_->elements == elements) return absl::OkStatus();
  RM_RETURN_IF_ERROR(owners.Check());
  Plan plan{owners, elements, {}, {}, {}, {}};
  for (int rank = 0; rank < owners.world(); ++rank) {
    plan.cover.push_back(CoveringNodes(owners.shards(), owners.ShardsOf(rank)));
    (plan.cover.back().empty() ? plan.idle : plan.owners).push_back(rank);
  }
  plan.steps = HalvingPlan(owners.shards(), plan.cover, elements);
  plan_ = std::move(plan);
  return absl::OkStatus();
}

template <typename T>
bool HalvingSum<T>::TakesPart(const Context& run, const NodeStep& step) {
  return std::any_of(step.swaps.begin(), step.swaps.end(), [&](const PartSwap& swap) {
    return swap.left == run.transport.rank() || swap.right == run.transport.rank();
  });
}

// They are few. Nothing where this rank has no part of the node.
template <typename T>
typename HalvingSum<T>::Held HalvingSum<T>::HeldOf(const ShardRange& node) const {
  const auto found = std::ranges::find(held_, node, &std::pair<ShardRange, Held>::first);
  return found == held_.end() ? Held() : found->second;
}

// The inputs are only read (no reducing in place). The root's sum goes to `out`, and so does the
// first other one: where a rank's ranges are aligned to the tree, it never needs more memory. A
// part that this rank still sends from there is only written over with a sum that contains it, and
// so comes after.
template <typename T>
T* HalvingSum<T>::PlaceFor(Context& run, const ShardRange& node, const Held& left,
                           const Held& right) {
  if (node == ShardRange{0, run.mine.shards()}) return run.out.data();
  if (left.sum != nullptr) return left.sum;
  if (right.sum != nullptr) return right.sum;
  if (!std::exchange(run.out_is_taken, true)) return run.out.data();
  if (run.buffers_taken == buffers_.size()) buffers_.emplace_back();
  std::vector<T>& buffer = buffers_[run.buffers_taken++];
  buffer.resize(run.out.size());
  return buffer.data();
}

template <typename T>
void HalvingSum<T>::Send(Context& run, int to, const T* values, Piece piece) {
  for (const Piece& part : PiecesOf(piece, run.segment_elements))
    run.transport.PostSend(to, std::as_bytes(std::span(values + part.offset, part.count)));
}

template <typename T>
absl::Status HalvingSum<T>::Add(Context& run, const NodeStep& step) {
  const Phase phase("add halves");
  const int mid = SplitPoint(step.node);
  const Held left = HeldOf({step.node.begin, mid});
  const Held right = HeldOf({mid, step.node.end});
  T* const sum = PlaceFor(run, step.node, left, right);
  const int rank = run.transport.rank();
  for (const auto& [i, j, low, high] : step.swaps) {
    if (i == j) continue;
    if (i == rank) Send(run, j, left.values, high);
    if (j == rank) Send(run, i, right.values, low);
  }
  RM_RETURN_IF_ERROR(AddReceived(run, step, left, right, sum));
  held_.push_back({step.node, {sum, sum}});
  return absl::OkStatus();
}

template <typename T>
absl::Status HalvingSum<T>::AddReceived(Context& run, const NodeStep& step, const Held& left,
                                        const Held& right, T* sum) {
  const int rank = run.transport.rank();
  incoming_.clear();
  for (const auto& [i, j, low, high] : step.swaps) {
    if (i == rank && j == rank) {
      collectives::Add(sum + low.offset, left.values + low.offset, right.values + low.offset,
                       low.count);
    } else if (i == rank) {
      for (const Piece& part : PiecesOf(low, run.segment_elements))
        incoming_.push_back({j, false, part, left.values + part.offset});
    } else if (j == rank) {
      for (const Piece& part : PiecesOf(high, run.segment_elements))
        incoming_.push_back({i, true, part, right.values + part.offset});
    }
  }
  if constexpr (kCombines<T>) {
    return CombineReceived(run, sum);
  } else {
    return AddAfterReceiving(run, sum);
  }
}

// What arrives is added straight into place.
template <typename T>
absl::Status HalvingSum<T>::CombineReceived(Context& run, T* sum) requires kCombines<T> {
  receipts_.clear();
  for (const auto& [from, is_left, piece, mine] : incoming_) {
    receipts_.push_back(run.transport.PostCombine(
        from, {Adding<T>(), std::as_bytes(std::span(mine, piece.count)),
               std::as_writable_bytes(std::span(sum + piece.offset, piece.count)), is_left}));
  }
  return WaitForAll(run.transport, receipts_);
}

// One piece is received while the one before is added.
template <typename T>
absl::Status HalvingSum<T>::AddAfterReceiving(Context& run, T* sum) {
  Receipt receipts[2];
  const auto post = [&](size_t n) {
    std::vector<T>& into = scratch_[n % 2];
    into.resize(std::max(into.size(), incoming_[n].piece.count));
    const auto bytes = std::as_writable_bytes(std::span(into).first(incoming_[n].piece.count));
    receipts[n % 2] = run.transport.PostReceive(incoming_[n].from, bytes);
  };
  if (!incoming_.empty()) post(0);
  for (size_t n = 0; n < incoming_.size(); ++n) {
    if (n + 1 < incoming_.size()) post(n + 1);
    RM_RETURN_IF_ERROR(run.transport.Wait(receipts[n % 2]));
    const auto& [from, is_left, piece, mine] = incoming_[n];
    const T* theirs = scratch_[n % 2].data();
    collectives::Add(sum + piece.offset, is_left ? theirs : mine, is_left ? mine : theirs,
                     piece.count);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status HalvingSum<T>::Spread(Context& run, const NodeStep& step) {
  const Phase phase("spread halves");
  const int rank = run.transport.rank();
  receipts_.clear();
  const auto swap_back = [&](int peer, Piece sent, Piece received) {
    Send(run, peer, run.out.data(), sent);
    for (const Piece& part : PiecesOf(received, run.segment_elements))
      receipts_.push_back(run.transport.PostReceive(peer, WritableBytesOf(run.out, part)));
  };
  for (const auto& [i, j, low, high] : step.swaps) {
    if (i == j) continue;
    if (i == rank) swap_back(j, low, high);
    if (j == rank) swap_back(i, high, low);
  }
  return WaitForAll(run.transport, receipts_);
}

template class HalvingSum<float>;
template class HalvingSum<double>;
template class HalvingSum<BFloat16>;
template class HalvingSum<HalfBlock>;

}  // namespace ringmaster::collectives
