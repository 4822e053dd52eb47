#include "operator/manager/rush.h"

namespace ringmaster::manager {
namespace {

// Between the creations of one job and those of the next.
constexpr std::chrono::milliseconds kLull{250};

}  // namespace

bool Rush::IsOn() const {
  const std::lock_guard lock(mutex_);
  return creations_ > 0 || (ended_ && clock_.SteadyNow() - *ended_ < kLull);
}

void Rush::Begin() {
  const std::lock_guard lock(mutex_);
  ++creations_;
}

void Rush::End() {
  const std::lock_guard lock(mutex_);
  --creations_;
  ended_ = clock_.SteadyNow();
}

}  // namespace ringmaster::manager
