#include "runtime/collectives/algorithms/direct_sum.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "runtime/collectives/add.h"
#include "runtime/collectives/algorithms/doubling.h"
#include "runtime/collectives/algorithms/interleave.h"
#include "runtime/collectives/algorithms/transfer.h"
#include "runtime/collectives/timeline.h"

namespace ringmaster::collectives {
namespace {

SumSchedule ScheduleFor(const Ownership& ownership, SumOrder order, int rank, bool combines) {
  std::vector<SumSource> sources;
  std::vector<ShardRange> nodes;
  for (int from = 0; from < ownership.world(); ++from) {
    const std::vector<int> owned = ownership.ShardsOf(from);
    if (order == SumOrder::kByRank) {
      if (!owned.empty()) sources.push_back({from, 0});
      continue;
    }
    int index = 0;
    for (const ShardRange& node : CoveringNodes(ownership.shards(), owned)) {
      nodes.push_back(node);
      sources.push_back({from, index++});
    }
  }
  std::vector<Addition> additions;
  if (order == SumOrder::kTree) {
    additions = CombiningPlan(ownership.shards(), nodes);
  } else {
    for (int i = 1; i < static_cast<int>(sources.size()); ++i) additions.push_back({0, i});
  }
  return ScheduleOf(sources, additions, rank, combines);
}

// Two ranks with a sum each, of which the one that arrives is combined at once.
bool IsExchange(const SumSchedule& schedule) {
  return schedule.steps.size() == 1 && schedule.steps.front().combines() &&
         !schedule.steps.front().outer;
}

}  // namespace

template <typename T>
absl::Status DirectSum<T>::Run(Transport& transport, const Contribution<T>& mine, std::span<T> out,
                               size_t segment_bytes, DirectSteps steps) {
  Context run{transport, mine, out};
  const absl::Status status = RunSteps(run, segment_bytes, steps);
  // What is queued lies in `mine`, `out` and this object, so the operation may end later.
  return status.ok() ? status : transport.Fail({status, -1});
}

// All messages of a step are queued before a rank waits.
template <typename T>
absl::Status DirectSum<T>::RunSteps(Context& run, size_t segment_bytes, DirectSteps steps) {
  const size_t largest = PieceElements(sizeof(T), segment_bytes);
  if (steps == DirectSteps::kOne) {
    RM_RETURN_IF_ERROR(RunOneStep(run, largest));
  } else {
    TellOwnership(run);
    const auto send = [&](int to, Piece piece) { Send(run, to, piece); };
    const auto add = [&](Piece piece) { return AddPiece(run, piece); };
    const auto bytes_of = [&](Piece piece) { return WritableBytesOf(run.out, piece); };
    RM_RETURN_IF_ERROR(SumAndSpread(run.transport, run.out.size(), largest, send, add, bytes_of));
  }
  return Agree(run);  // also a rank that has added nothing
}

template <typename T>
absl::Status DirectSum<T>::RunOneStep(Context& run, size_t largest) {
  Transport& transport = run.transport;
  const int world = transport.world();
  if constexpr (kCombines<T>) {
    // A sum of two is the same in either order; and of a few numbers what many steps need would
    // take a good part of the time.
    if (world == 2 && run.mine.knows_owners) {
      RM_RETURN_IF_ERROR(Agree(run));
      if (IsExchange(plan_->schedule))
        return DoublingAllreduce(transport, Adding<T>(), run.mine.sums.front(), run.out);
    }
  }
  TellOwnership(run);
  const auto pieces = PiecesOf({0, run.out.size()}, largest);
  const std::pmr::vector<int> others = OthersOf(transport);
  for (const Piece& piece : pieces) {
    for (const std::span<const T> sum : run.mine.sums)
      transport.PostSendToEach(others, BytesOf(sum, piece));
  }
  for (const Piece& piece : pieces) RM_RETURN_IF_ERROR(AddPiece(run, piece));
  return absl::OkStatus();
}

template <typename T>
void DirectSum<T>::Send(Context& run, int to, Piece piece) {
  for (const std::span<const T> sum : run.mine.sums)
    run.transport.PostSend(to, BytesOf(sum, piece));
}

// In step i to rank r+i, so that no rank is everybody's target at once.
template <typename T>
void DirectSum<T>::TellOwnership(Context& run) {
  rows_.clear();
  if (run.mine.knows_owners) return;
  const int world = run.transport.world();
  const int rank = run.transport.rank();
  Ownership& owners = run.mine.owners;
  for (int step = 1; step < world; ++step) {
    const int from = RingRank(rank, -step, world);
    run.transport.PostSend(RingRank(rank, step, world), owners.bits(rank));
    rows_.push_back(run.transport.PostReceive(from, owners.bits(from)));
  }
}

// Waits until it is known what comes from whom.
template <typename T>
absl::Status DirectSum<T>::Agree(Context& run) {
  if (std::exchange(run.is_agreed, true)) return absl::OkStatus();
  if (!run.mine.knows_owners) {
    const Phase phase("exchange ownership");
    RM_RETURN_IF_ERROR(WaitForAll(run.transport, rows_));
  }
  const int rank = run.transport.rank();
  const Ownership& owners = run.mine.owners;
  if (plan_ && plan_->rank == rank && plan_->ownership == owners) return absl::OkStatus();
  RM_RETURN_IF_ERROR(owners.Check());
  plan_ = {owners, rank, ScheduleFor(owners, run.mine.order, rank, kCombines<T>)};
  return absl::OkStatus();
}

template <typename T>
void DirectSum<T>::PrepareScratch(size_t elements) {
  const auto places = static_cast<size_t>(plan_->schedule.scratch);
  if (scratch_.size() == places && scratch_elements_ >= elements) return;
  scratch_elements_ = 0;
  scratch_.clear();
  for (size_t i = 0; i < places; ++i)
    scratch_.push_back(std::make_unique_for_overwrite<T[]>(elements));
  scratch_elements_ = elements;
}

template <typename T>
absl::Status DirectSum<T>::AddPiece(Context& run, Piece piece) {
  RM_RETURN_IF_ERROR(Agree(run));
  const Phase phase("add slice");
  PrepareScratch(piece.count);
  awaited_.assign(1 + scratch_.size(), std::nullopt);
  for (const SumStep& step : plan_->schedule.steps) RM_RETURN_IF_ERROR(Take(run, piece, step));
  return WaitFor(run, {});
}

template <typename T>
absl::Status DirectSum<T>::Take(Context& run, Piece piece, const SumStep& step) {
  using Kind = SumStep::Kind;
  const std::span<T> into = TargetOf(run, piece, step.into);
  if (step.kind == Kind::kReceive) {
    ReceiptOf(step.into) = run.transport.PostReceive(step.peer, std::as_writable_bytes(into));
    return absl::OkStatus();
  }
  if (step.kind != Kind::kCombineLeft) RM_RETURN_IF_ERROR(WaitFor(run, step.left));
  if (step.kind == Kind::kAdd || step.kind == Kind::kCombineLeft)
    RM_RETURN_IF_ERROR(WaitFor(run, step.right));
  if (step.kind == Kind::kCopy) {
    std::ranges::copy(OperandOf(run, piece, step.left), into.begin());
  } else if (step.kind == Kind::kAdd) {
    Add(into.data(), OperandOf(run, piece, step.left).data(),
        OperandOf(run, piece, step.right).data(), piece.count);
  } else if constexpr (kCombines<T>) {
    return CombineArriving(run, piece, step);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status DirectSum<T>::CombineArriving(Context& run, Piece piece,
                                           const SumStep& step) requires kCombines<T> {
  const bool arrives_left = step.kind == SumStep::Kind::kCombineLeft;
  const auto mine = std::as_bytes(OperandOf(run, piece, arrives_left ? step.right : step.left));
  const auto into = std::as_writable_bytes(TargetOf(run, piece, step.into));
  Combining combining{Adding<T>(), mine, into, arrives_left};
  if (!step.outer) {
    ReceiptOf(step.into) = run.transport.PostCombine(step.peer, combining);
    return absl::OkStatus();
  }
  RM_RETURN_IF_ERROR(WaitFor(run, *step.outer));
  combining.outer = std::as_bytes(OperandOf(run, piece, *step.outer));
  // As after an addition, the steps to come may write over what was added.
  return run.transport.Wait(run.transport.PostCombine(step.peer, combining));
}

template <typename T>
std::span<T> DirectSum<T>::TargetOf(const Context& run, Piece piece, const SumPlace& place) {
  if (place.kind == SumPlace::Kind::kResult) return run.out.subspan(piece.offset, piece.count);
  return {scratch_[static_cast<size_t>(place.index)].get(), piece.count};
}

template <typename T>
std::span<const T> DirectSum<T>::OperandOf(const Context& run, Piece piece, const SumPlace& place) {
  if (place.kind != SumPlace::Kind::kOwn) return TargetOf(run, piece, place);
  return run.mine.sums[static_cast<size_t>(place.index)].subspan(piece.offset, piece.count);
}

template <typename T>
std::optional<Receipt>& DirectSum<T>::ReceiptOf(const SumPlace& place) {
  return awaited_[place.kind == SumPlace::Kind::kResult ? 0 : 1 + static_cast<size_t>(place.index)];
}

template <typename T>
absl::Status DirectSum<T>::WaitFor(Context& run, const SumPlace& place) {
  if (place.kind == SumPlace::Kind::kOwn) return absl::OkStatus();
  const auto receipt = std::exchange(ReceiptOf(place), std::nullopt);
  return receipt ? run.transport.Wait(*receipt) : absl::OkStatus();
}

template class DirectSum<float>;
template class DirectSum<double>;
template class DirectSum<BFloat16>;
template class DirectSum<HalfBlock>;

}  // namespace ringmaster::collectives
