#include "operator/controller/streak.h"

namespace ringmaster::controller {

bool Streak::Again() {
  const SteadyTime now = clock_.SteadyNow();
  if (count_ == 0) first_ = now;
  if (count_ < times_) ++count_;  // so that it never overflows
  return count_ == times_ && now - first_ >= span_;
}

}  // namespace ringmaster::controller
