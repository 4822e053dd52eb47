// When an answer that may be a mistake is to be believed: after it was given several times in a
// row, over some time. One of several API servers that is just starting, or is of another version,
// may not know a kind that all others serve.
//
// Not thread-safe.
#ifndef RINGMASTER_OPERATOR_CONTROLLER_STREAK_H_
#define RINGMASTER_OPERATOR_CONTROLLER_STREAK_H_

#include "common/clock.h"

namespace ringmaster::controller {

class Streak {
 public:
  // Believes the `times`th answer in a row, or the first later one that comes at least `span` after
  // the first. `clock` must outlive the streak.
  Streak(int times, Duration span, const Clock& clock)
      : times_(times), span_(span), clock_(clock) {}

  // The answer was given. Whether it is to be believed now.
  bool Again();
  // Another answer was given: from here it counts anew.
  void Break() { count_ = 0; }

 private:
  const int times_;
  const Duration span_;
  const Clock& clock_;
  int count_ = 0;
  SteadyTime first_{};
};

}  // namespace ringmaster::controller

#endif  // RINGMASTER_OPERATOR_CONTROLLER_STREAK_H_
