#include "runtime/collectives/algorithms/sum_schedule.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/check.h"

namespace ringmaster::collectives {
namespace {

class Scheduler {
 public:
  Scheduler(std::span<const SumSource> sources, int me, bool combines)
      : sources_(sources), combines_(combines), places_(sources.size()) {
    for (size_t i = 0; i < sources.size(); ++i) {
      if (sources[i].rank == me) places_[i] = {SumPlace::Kind::kOwn, sources[i].index};
    }
  }

  SumSchedule Schedule(std::span<const Addition> plan) {
    if (plan.empty()) {
      Only();
      return std::move(schedule_);
    }
    for (size_t i = 0; i < plan.size(); ++i)
      Add(static_cast<size_t>(plan[i].into), static_cast<size_t>(plan[i].from),
          i + 1 == plan.size());
    return std::move(schedule_);
  }

 private:
  using Kind = SumStep::Kind;

  // The only source is the sum.
  void Only() {
    RM_CHECK(sources_.size() == 1, "a sum of several vectors needs additions");
    if (places_[0]) {
      Append({Kind::kCopy, -1, *places_[0], {}, {}});
    } else {
      Append({Kind::kReceive, sources_[0].rank, {}, {}, {}});
    }
  }

  // The left source's place becomes that of the sum. Of two messages the left one is kept, and the
  // right one combined with it.
  void Add(size_t left, size_t right, bool is_last) {
    if (!places_[left] && (!combines_ || !places_[right])) Keep(left);
    if (!places_[right] && !combines_) Keep(right);
    if (!places_[left]) {
      KeepBefore(left);
      const SumPlace into = PlaceFor(std::nullopt, *places_[right], is_last);
      Append({Kind::kCombineLeft, sources_[left].rank, {}, *places_[right], into});
      places_[left] = into;
    } else if (!places_[right]) {
      KeepBefore(right);
      const SumPlace into = PlaceFor(*places_[left], std::nullopt, is_last);
      Append({Kind::kCombineRight, sources_[right].rank, *places_[left], {}, into});
      places_[left] = places_[right] = into;  // nothing of the right one is to come any more
    } else {
      const SumPlace into = PlaceFor(*places_[left], *places_[right], is_last);
      if (!AddToLast(*places_[left], *places_[right], into))
        Append({Kind::kAdd, -1, *places_[left], *places_[right], into});
      places_[left] = into;
    }
  }

  // Where one of two operands is what the last step combines, that step adds the other one, and the
  // operand never reaches memory.
  bool AddToLast(const SumPlace& left, const SumPlace& right, const SumPlace& into) {
    if (schedule_.steps.empty()) return false;
    SumStep& last = schedule_.steps.back();
    if (!last.combines() || last.outer || (last.into != left && last.into != right)) return false;
    last.outer = last.into == left ? right : left;
    last.into = into;
    return true;
  }

  // Receives a source whose turn to be added has not come.
  void Keep(size_t source) {
    KeepBefore(source);
    const SumPlace into = Take();
    Append({Kind::kReceive, sources_[source].rank, {}, {}, into});
    places_[source] = into;
  }

  // What comes from the same rank before it.
  void KeepBefore(size_t source) {
    for (size_t i = 0; i < source; ++i) {
      if (sources_[i].rank == sources_[source].rank && !places_[i]) Keep(i);
    }
  }

  // Over an operand that may be written; the other one's place is free afterwards.
  SumPlace PlaceFor(std::optional<SumPlace> left, std::optional<SumPlace> right, bool is_last) {
    const auto is_free = [](const std::optional<SumPlace>& place) {
      return place && place->kind != SumPlace::Kind::kOwn;
    };
    if (is_last) return {};
    if (is_free(left)) {
      if (is_free(right)) Release(*right);
      return *left;
    }
    return is_free(right) ? *right : Take();
  }

  SumPlace Take() {
    if (!std::exchange(result_is_taken_, true)) return {};
    if (!free_.empty()) {
      const int index = free_.back();
      free_.pop_back();
      return {SumPlace::Kind::kScratch, index};
    }
    return {SumPlace::Kind::kScratch, schedule_.scratch++};
  }

  void Release(const SumPlace& place) {
    if (place.kind == SumPlace::Kind::kResult) {
      result_is_taken_ = false;
    } else {
      free_.push_back(place.index);
    }
  }

  void Append(const SumStep& step) { schedule_.steps.push_back(step); }

  const std::span<const SumSource> sources_;
  const bool combines_;
  std::vector<std::optional<SumPlace>> places_;  // by source; none: still to be received
  SumSchedule schedule_;
  bool result_is_taken_ = false;
  std::vector<int> free_;  // scratch places
};

}  // namespace

SumSchedule ScheduleOf(std::span<const SumSource> sources, std::span<const Addition> plan, int me,
                       bool combines) {
  return Scheduler(sources, me, combines).Schedule(plan);
}

}  // namespace ringmaster::collectives
