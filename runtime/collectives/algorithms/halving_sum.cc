#include "runtime/collectives/algorithms/halving_sum.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/status.h"
#include "runtime/collectives/add.h"
#include "runtime/collectives/algorithms/transfer.h"
#include "runtime/collectives/timeline.h"

namespace ringmaster::collectives {

template <typename T>
HalvingSum<T>::HalvingSum(Transport& transport, Contribution<T> mine, std::span<T> out,
                          size_t segment_bytes)
    : transport_(transport),
      mine_(std::move(mine)),
      out_(out),
      ownership_(transport.world(), mine_.shards),
      segment_elements_(std::max<size_t>(1, segment_bytes / sizeof(T))) {}

template <typename T>
absl::Status HalvingSum<T>::Run() {
  // What is queued lies in this object's memory, so the operation ends here, well or badly.
  const absl::Status status = RunSteps();
  return status.ok() ? transport_.Finish() : transport_.Fail({status, -1});
}

template <typename T>
absl::Status HalvingSum<T>::RunSteps() {
  RM_RETURN_IF_ERROR(ExchangeOwnership());
  RM_RETURN_IF_ERROR(ownership_.Check());
  const std::vector<std::vector<ShardRange>> cover = Cover();
  const std::vector<NodeStep> steps = HalvingPlan(mine_.shards, cover, out_.size());
  for (const NodeStep& step : steps) {
    if (TakesPart(step)) RM_RETURN_IF_ERROR(Add(step));
  }
  // Where one rank has all shards there are no steps, and it has the sum already.
  if (const auto root = held_.find({0, mine_.shards}); steps.empty() && root != held_.end())
    std::copy_n(root->second.values, out_.size(), out_.data());
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (TakesPart(*step)) RM_RETURN_IF_ERROR(Spread(*step));
  }
  return ServeIdle(cover);
}

// Ranks without a shard get the sum from those that have some.
template <typename T>
absl::Status HalvingSum<T>::ServeIdle(const std::vector<std::vector<ShardRange>>& cover) {
  const Phase phase("serve the idle");
  std::vector<int> owners;
  std::vector<int> idle;
  for (int rank = 0; rank < transport_.world(); ++rank)
    (cover[static_cast<size_t>(rank)].empty() ? idle : owners).push_back(rank);
  std::vector<Receipt> receipts;
  const auto pieces = PiecesOf({0, out_.size()}, segment_elements_);
  for (size_t i = 0; i < idle.size(); ++i) {
    const int server = owners[i % owners.size()];
    if (server == transport_.rank()) Send(idle[i], out_.data(), {0, out_.size()});
    if (idle[i] != transport_.rank()) continue;
    for (const Piece& piece : pieces)
      receipts.push_back(transport_.PostReceive(server, WritableBytesOf(out_, piece)));
  }
  for (const Receipt& receipt : receipts) RM_RETURN_IF_ERROR(transport_.Wait(receipt));
  return absl::OkStatus();
}

// In step k a rank passes on what it knows of the 2^k ranks from itself on.
template <typename T>
absl::Status HalvingSum<T>::ExchangeOwnership() {
  const Phase phase("exchange ownership");
  const int world = transport_.world();
  const int rank = transport_.rank();
  ownership_.Set(rank, mine_.owned);
  const size_t row = ownership_.bits(rank).size();
  std::vector<std::byte> rows(row * static_cast<size_t>(world));  // from this rank on
  std::copy_n(ownership_.bits(rank).begin(), row, rows.begin());
  for (int known = 1; known < world; known *= 2) transport_.Connect(RingRank(rank, -known, world));
  for (int known = 1; known < world; known *= 2) {
    const size_t bytes = row * static_cast<size_t>(std::min(known, world - known));
    transport_.PostSend(RingRank(rank, -known, world), std::span(rows).first(bytes));
    const std::span<std::byte> more =
        std::span(rows).subspan(row * static_cast<size_t>(known), bytes);
    RM_RETURN_IF_ERROR(transport_.Wait(transport_.PostReceive(RingRank(rank, known, world), more)));
  }
  for (int i = 1; i < world; ++i) {
    const int peer = RingRank(rank, i, world);
    std::copy_n(&rows[row * static_cast<size_t>(i)], row, ownership_.bits(peer).begin());
  }
  return transport_.Finish();  // `rows` is sent from until then
}

// The nodes that each rank brings; this one's are what it holds first.
template <typename T>
std::vector<std::vector<ShardRange>> HalvingSum<T>::Cover() {
  std::vector<std::vector<ShardRange>> cover;
  for (int rank = 0; rank < transport_.world(); ++rank)
    cover.push_back(CoveringNodes(mine_.shards, ownership_.ShardsOf(rank)));
  const auto& own = cover[static_cast<size_t>(transport_.rank())];
  for (size_t i = 0; i < own.size(); ++i) held_[own[i]] = {mine_.sums[i].data(), nullptr};
  return cover;
}

template <typename T>
bool HalvingSum<T>::TakesPart(const NodeStep& step) const {
  return std::any_of(step.swaps.begin(), step.swaps.end(), [&](const PartSwap& swap) {
    return swap.left == transport_.rank() || swap.right == transport_.rank();
  });
}

// The inputs are only read (no reducing in place). The root's sum goes to `out`, and so does the
// first other one: where a rank's ranges are aligned to the tree, it never needs more memory. A
// part that this rank still sends from there is only written over with a sum that contains it, and
// so comes after.
template <typename T>
T* HalvingSum<T>::PlaceFor(const ShardRange& node, const Held& left, const Held& right) {
  if (node == ShardRange{0, mine_.shards}) return out_.data();
  if (left.sum != nullptr) return left.sum;
  if (right.sum != nullptr) return right.sum;
  if (!std::exchange(out_is_taken_, true)) return out_.data();
  buffers_.emplace_back(out_.size());
  return buffers_.back().data();
}

template <typename T>
void HalvingSum<T>::Send(int to, const T* values, Piece piece) {
  for (const Piece& part : PiecesOf(piece, segment_elements_))
    transport_.PostSend(to, std::as_bytes(std::span(values + part.offset, part.count)));
}

template <typename T>
absl::Status HalvingSum<T>::Add(const NodeStep& step) {
  const Phase phase("add halves");
  const int mid = SplitPoint(step.node);
  const Held left = held_[{step.node.begin, mid}];
  const Held right = held_[{mid, step.node.end}];
  T* const sum = PlaceFor(step.node, left, right);
  const int rank = transport_.rank();
  for (const auto& [i, j, low, high] : step.swaps) {
    if (i == j) continue;
    if (i == rank) Send(j, left.values, high);
    if (j == rank) Send(i, right.values, low);
  }
  RM_RETURN_IF_ERROR(AddReceived(step, left, right, sum));
  held_[step.node] = {sum, sum};
  return absl::OkStatus();
}

template <typename T>
absl::Status HalvingSum<T>::AddReceived(const NodeStep& step, const Held& left, const Held& right,
                                        T* sum) {
  const int rank = transport_.rank();
  std::vector<Incoming> incoming;
  for (const auto& [i, j, low, high] : step.swaps) {
    if (i == rank && j == rank) {
      collectives::Add(sum + low.offset, left.values + low.offset, right.values + low.offset,
                       low.count);
    } else if (i == rank) {
      for (const Piece& part : PiecesOf(low, segment_elements_))
        incoming.push_back({j, false, part, left.values + part.offset});
    } else if (j == rank) {
      for (const Piece& part : PiecesOf(high, segment_elements_))
        incoming.push_back({i, true, part, right.values + part.offset});
    }
  }
  if constexpr (kCombines<T>) {
    return CombineReceived(incoming, sum);
  } else {
    return AddAfterReceiving(incoming, sum);
  }
}

// What arrives is added straight into place.
template <typename T>
absl::Status HalvingSum<T>::CombineReceived(std::span<const Incoming> incoming,
                                            T* sum) requires kCombines<T> {
  std::vector<Receipt> receipts;
  for (const auto& [from, is_left, piece, mine] : incoming) {
    receipts.push_back(transport_.PostCombine(
        from, {Adding<T>(), std::as_bytes(std::span(mine, piece.count)),
               std::as_writable_bytes(std::span(sum + piece.offset, piece.count)), is_left}));
  }
  return WaitForAll(transport_, receipts);
}

// One piece is received while the one before is added.
template <typename T>
absl::Status HalvingSum<T>::AddAfterReceiving(std::span<const Incoming> incoming, T* sum) {
  std::vector<T> scratch[2];
  Receipt receipts[2];
  const auto post = [&](size_t n) {
    std::vector<T>& into = scratch[n % 2];
    into.resize(std::max(into.size(), incoming[n].piece.count));
    const auto bytes = std::as_writable_bytes(std::span(into).first(incoming[n].piece.count));
    receipts[n % 2] = transport_.PostReceive(incoming[n].from, bytes);
  };
  if (!incoming.empty()) post(0);
  for (size_t n = 0; n < incoming.size(); ++n) {
    if (n + 1 < incoming.size()) post(n + 1);
    RM_RETURN_IF_ERROR(transport_.Wait(receipts[n % 2]));
    const auto& [from, is_left, piece, mine] = incoming[n];
    const T* theirs = scratch[n % 2].data();
    collectives::Add(sum + piece.offset, is_left ? theirs : mine, is_left ? mine : theirs,
                     piece.count);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status HalvingSum<T>::Spread(const NodeStep& step) {
  const Phase phase("spread halves");
  const int rank = transport_.rank();
  std::vector<Receipt> receipts;
  const auto swap_back = [&](int peer, Piece sent, Piece received) {
    Send(peer, out_.data(), sent);
    for (const Piece& part : PiecesOf(received, segment_elements_))
      receipts.push_back(transport_.PostReceive(peer, WritableBytesOf(out_, part)));
  };
  for (const auto& [i, j, low, high] : step.swaps) {
    if (i == j) continue;
    if (i == rank) swap_back(j, low, high);
    if (j == rank) swap_back(i, high, low);
  }
  for (const Receipt& receipt : receipts) RM_RETURN_IF_ERROR(transport_.Wait(receipt));
  return absl::OkStatus();
}

template class HalvingSum<float>;
template class HalvingSum<double>;
template class HalvingSum<BFloat16>;
template class HalvingSum<HalfBlock>;

}  // namespace ringmaster::collectives
