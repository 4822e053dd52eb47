// How often this program may ask the server: so many calls a second on average, so many at once
// after a pause. Callers are served in the order in which they ask. Thread-safe; blocks nobody: the
// caller waits for the time that it is given.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_RATE_LIMITER_H_
#define RINGMASTER_OPERATOR_KUBE_REST_RATE_LIMITER_H_

#include <mutex>
#include <optional>

#include "common/clock.h"

namespace ringmaster::kube::rest {

class RateLimiter {
 public:
  // qps 0: no limit. burst is at least 1.
  RateLimiter(double qps, int burst) : qps_(qps), burst_(burst) {}

  // When the next call may be made, at `now` or later; the place is then taken. Nothing, and no
  // place taken, when that would be after `deadline`.
  std::optional<SteadyTime> Reserve(SteadyTime now, SteadyTime deadline);

 private:
  const double qps_;
  const int burst_;
  std::mutex mutex_;
  SteadyTime full_{};  // when the bucket would be full again; guarded by mutex_
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_RATE_LIMITER_H_
