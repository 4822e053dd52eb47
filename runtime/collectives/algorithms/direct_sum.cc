#include "runtime/collectives/algorithms/direct_sum.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "runtime/collectives/add.h"
#include "runtime/collectives/timeline.h"

namespace ringmaster::collectives {

template <typename T>
DirectSum<T>::DirectSum(Transport& transport, Contribution<T> mine, std::span<T> out,
                        size_t segment_bytes)
    : transport_(transport),
      mine_(std::move(mine)),
      out_(out),
      ownership_(transport.world(), mine_.shards),
      segment_elements_(std::max<size_t>(1, segment_bytes / sizeof(T))) {}

template <typename T>
absl::Status DirectSum<T>::Run() {
  ownership_.Set(transport_.rank(), mine_.owned);
  // What is queued lies in this object's memory, so the operation ends here, well or badly.
  const absl::Status status = RunSteps();
  return status.ok() ? transport_.Finish() : transport_.Fail({status, -1});
}

template <typename T>
absl::Status DirectSum<T>::RunSteps() {
  RM_RETURN_IF_ERROR(ExchangeOwnership());
  RM_RETURN_IF_ERROR(ownership_.Check());
  PlanAdditions();
  RM_RETURN_IF_ERROR(AddSlice());
  return GatherSlices();
}

// Everything that this rank sends is queued before it waits: in step i to rank r+i, while it
// receives from r-i, so that no rank is everybody's target at once.
template <typename T>
absl::Status DirectSum<T>::ExchangeOwnership() {
  const Phase phase("exchange ownership");
  const int world = transport_.world();
  const int rank = transport_.rank();
  std::vector<Receipt> receipts;
  for (int step = 1; step < world; ++step) {
    const int from = RingRank(rank, -step, world);
    transport_.PostSend(RingRank(rank, step, world), ownership_.bits(rank));
    receipts.push_back(transport_.PostReceive(from, ownership_.bits(from)));
  }
  SendNodes();
  for (const Receipt& receipt : receipts) RM_RETURN_IF_ERROR(transport_.Wait(receipt));
  return absl::OkStatus();
}

template <typename T>
void DirectSum<T>::SendNodes() {
  const int world = transport_.world();
  for (int step = 1; step < world; ++step) {
    const int to = RingRank(transport_.rank(), step, world);
    for (const Piece& piece : PiecesOf(SliceOf(out_.size(), world, to), segment_elements_)) {
      for (const std::span<const T> sum : mine_.sums) transport_.PostSend(to, BytesOf(sum, piece));
    }
  }
}

template <typename T>
void DirectSum<T>::PlanAdditions() {
  std::vector<ShardRange> nodes;
  for (int rank = 0; rank < transport_.world(); ++rank) {
    const std::vector<int> owned = ownership_.ShardsOf(rank);
    if (mine_.order == SumOrder::kByRank) {
      if (!owned.empty()) sources_.push_back({rank, 0});
      continue;
    }
    size_t index = 0;
    for (const ShardRange& node : CoveringNodes(mine_.shards, owned)) {
      nodes.push_back(node);
      sources_.push_back({rank, index++});
    }
  }
  if (mine_.order == SumOrder::kTree) {
    plan_ = CombiningPlan(mine_.shards, nodes);
  } else {
    for (int i = 1; i < static_cast<int>(sources_.size()); ++i) plan_.push_back({0, i});
  }
}

template <typename T>
void DirectSum<T>::PostPiece(const Piece& piece, Received* buffers) {
  buffers->values.resize(sources_.size());
  buffers->receipts.clear();
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (sources_[i].rank == transport_.rank()) continue;
    buffers->values[i].resize(piece.count);
    const std::span<T> into(buffers->values[i]);
    buffers->receipts.push_back(
        transport_.PostReceive(sources_[i].rank, std::as_writable_bytes(into)));
  }
}

// Carries the plan out. A node of this rank's own is only read (no reducing in place): its first
// addition goes to a buffer, and the plan's last one, the root's, straight to the result.
template <typename T>
absl::Status DirectSum<T>::AddPiece(const Piece& piece, Received* buffers) {
  for (const Receipt& receipt : buffers->receipts) RM_RETURN_IF_ERROR(transport_.Wait(receipt));
  std::vector<const T*> current(sources_.size());
  for (size_t i = 0; i < sources_.size(); ++i) {
    const bool own = sources_[i].rank == transport_.rank();
    current[i] = own ? &mine_.sums[sources_[i].index][piece.offset] : buffers->values[i].data();
  }
  T* const result = &out_[piece.offset];
  if (plan_.empty()) std::copy_n(current[0], piece.count, result);
  for (size_t i = 0; i < plan_.size(); ++i) {
    const auto [into, from] = plan_[i];
    buffers->values[into].resize(piece.count);
    T* const sum = i + 1 == plan_.size() ? result : buffers->values[into].data();
    Add(sum, current[into], current[from], piece.count);
    current[into] = sum;
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status DirectSum<T>::AddSlice() {
  const Phase phase("add slice");
  const int world = transport_.world();
  const std::vector<Piece> pieces =
      PiecesOf(SliceOf(out_.size(), world, transport_.rank()), segment_elements_);
  Received buffers[2];
  if (!pieces.empty()) PostPiece(pieces[0], &buffers[0]);
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i + 1 < pieces.size()) PostPiece(pieces[i + 1], &buffers[(i + 1) % 2]);
    RM_RETURN_IF_ERROR(AddPiece(pieces[i], &buffers[i % 2]));
    for (int step = 1; step < world; ++step) {
      transport_.PostSend(RingRank(transport_.rank(), step, world),
                          BytesOf(std::span<const T>(out_), pieces[i]));
    }
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status DirectSum<T>::GatherSlices() {
  const Phase phase("gather slices");
  const int world = transport_.world();
  std::vector<Receipt> receipts;
  for (int step = 1; step < world; ++step) {
    const int from = RingRank(transport_.rank(), -step, world);
    for (const Piece& piece : PiecesOf(SliceOf(out_.size(), world, from), segment_elements_)) {
      receipts.push_back(transport_.PostReceive(from, WritableBytesOf(out_, piece)));
    }
  }
  for (const Receipt& receipt : receipts) RM_RETURN_IF_ERROR(transport_.Wait(receipt));
  return absl::OkStatus();
}

template class DirectSum<float>;
template class DirectSum<double>;
template class DirectSum<BFloat16>;
template class DirectSum<HalfBlock>;

}  // namespace ringmaster::collectives
