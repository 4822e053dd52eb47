// What one rank does to add a piece of an ordered sum: which of the ranks' messages it combines as
// they arrive, which it must keep until their turn, and where sums lie meanwhile.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_SUM_SCHEDULE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_SUM_SCHEDULE_H_

#include <compare>
#include <optional>
#include <span>
#include <vector>

#include "runtime/collectives/shard_tree.h"

namespace ringmaster::collectives {

// One of the vectors that are added: the `index`-th that `rank` brings.
struct SumSource {
  int rank = 0;
  int index = 0;
};

// Where an operand or a sum lies.
struct SumPlace {
  enum class Kind { kOwn, kResult, kScratch };
  Kind kind = Kind::kResult;
  int index = 0;  // kOwn: among this rank's vectors, which are only read; kScratch: which
  auto operator<=>(const SumPlace&) const = default;
};

// One step; each may need the sums of those before, and may write over what one with `outer` reads.
struct SumStep {
  enum class Kind {
    kCopy,         // into = left
    kReceive,      // into = the next message from `peer`
    kAdd,          // into = left + right
    kCombineLeft,  // into = the next message from `peer` + right
    kCombineRight  // into = left + the next message from `peer`
  };
  Kind kind = Kind::kCopy;
  int peer = -1;
  SumPlace left;
  SumPlace right;
  SumPlace into;
  std::optional<SumPlace> outer{};  // of a combination: added to its sum as that is made

  bool combines() const { return kind == Kind::kCombineLeft || kind == Kind::kCombineRight; }
};

struct SumSchedule {
  std::vector<SumStep> steps;  // the sum of all ends in kResult
  int scratch = 0;             // how many places the steps need beside the result
};

// The steps of rank `me` that carry out `plan` (Addition::into and from are numbers of `sources`;
// the last addition's is the whole sum; none where there is one source). Of each rank the messages
// come in the order of `sources`. `combines`: whether a message may be combined as it arrives.
// Pure.
SumSchedule ScheduleOf(std::span<const SumSource> sources, std::span<const Addition> plan, int me,
                       bool combines);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_SUM_SCHEDULE_H_
