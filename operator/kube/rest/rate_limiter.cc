#include "operator/kube/rest/rate_limiter.h"

#include <algorithm>
#include <chrono>

namespace ringmaster::kube::rest {

// The bucket as one point in time: each call moves `full_` one interval on, and may be made as long
// as that is no more than `burst` intervals ahead.
std::optional<SteadyTime> RateLimiter::Reserve(SteadyTime now, SteadyTime deadline) {
  if (qps_ <= 0) return now;
  const auto interval =
      std::chrono::duration_cast<SteadyTime::duration>(std::chrono::duration<double>(1 / qps_));
  std::lock_guard lock(mutex_);
  const SteadyTime full = std::max(full_, now) + interval;
  const SteadyTime at = std::max(now, full - interval * burst_);
  if (at > deadline) return std::nullopt;
  full_ = full;
  return at;
}

}  // namespace ringmaster::kube::rest
