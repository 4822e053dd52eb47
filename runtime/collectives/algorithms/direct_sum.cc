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
  if (schedule.steps.size() != 1) return false;
  const SumStep& step = schedule.steps.front();
  using Kind = SumStep::Kind;
  return (step.kind == Kind::kCombineLeft || step.kind == Kind::kCombineRight) && !step.outer;
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
  const std::span<T> result = run.out.subspan(piece.offset, piece.count);
  const auto own = [&](const SumPlace& place) {
    return run.mine.sums[static_cast<size_t>(place.index)].subspan(piece.offset, piece.count);
  };
  using Kind = SumStep::Kind;
  PrepareScratch(piece.count);
  awaited_.assign(1 + scratch_.size(), std::nullopt);
  const auto number = [](const SumPlace& place) {
    return place.kind == SumPlace::Kind::kResult ? 0 : 1 + static_cast<size_t>(place.index);
  };
  const auto wait_for = [&](const SumPlace& place) -> absl::Status {
    if (place.kind == SumPlace::Kind::kOwn) return absl::OkStatus();
    const auto receipt = std::exchange(awaited_[number(place)], std::nullopt);
    return receipt ? run.transport.Wait(*receipt) : absl::OkStatus();
  };
  const auto target = [&](const SumPlace& place) {
    return place.kind == SumPlace::Kind::kResult
               ? result
               : std::span(scratch_[static_cast<size_t>(place.index)].get(), piece.count);
  };
  const auto operand = [&](const SumPlace& place) -> std::span<const T> {
    return place.kind == SumPlace::Kind::kOwn ? own(place) : target(place);
  };
  for (const auto& [kind, peer, left, right, into, outer] : plan_->schedule.steps) {
    const std::span<T> sum = target(into);
    if (kind == Kind::kReceive) {
      awaited_[number(into)] = run.transport.PostReceive(peer, std::as_writable_bytes(sum));
      continue;
    }
    if (kind != Kind::kCombineLeft) RM_RETURN_IF_ERROR(wait_for(left));
    if (kind == Kind::kAdd || kind == Kind::kCombineLeft) RM_RETURN_IF_ERROR(wait_for(right));
    if (kind == Kind::kCopy) {
      std::ranges::copy(operand(left), sum.begin());
    } else if (kind == Kind::kAdd) {
      Add(sum.data(), operand(left).data(), operand(right).data(), piece.count);
    } else if constexpr (kCombines<T>) {
      const bool arrives_left = kind == Kind::kCombineLeft;
      const auto mine = std::as_bytes(operand(arrives_left ? right : left));
      Combining combining{Adding<T>(), mine, std::as_writable_bytes(sum), arrives_left};
      if (outer) {
        RM_RETURN_IF_ERROR(wait_for(*outer));
        combining.outer = std::as_bytes(operand(*outer));
      }
      awaited_[number(into)] = run.transport.PostCombine(peer, combining);
      // As after an addition, the steps to come may write over what was added.
      if (outer) RM_RETURN_IF_ERROR(wait_for(into));
    }
  }
  return wait_for({});
}

template class DirectSum<float>;
template class DirectSum<double>;
template class DirectSum<BFloat16>;
template class DirectSum<HalfBlock>;

}  // namespace ringmaster::collectives
