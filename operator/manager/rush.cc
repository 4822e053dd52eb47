#include "operator/manager/rush.h"

#include <algorithm>

namespace ringmaster::manager {
namespace {

// Between the creations of one job and those of the next.
constexpr std::chrono::milliseconds kLull{250};
// The bucket of changes: what leaks out of it in a second, and from where on, and up to which
// level, it means a rush. It is below the former a second after the last change.
constexpr double kLeak = 50;
constexpr double kMany = 50;
constexpr double kMost = kMany + kLeak;

}  // namespace

bool Rush::IsOn() const {
  const std::lock_guard lock(mutex_);
  return creations_ > 0 || (ended_ && clock_.SteadyNow() - *ended_ < kLull) || Changes() > kMany;
}

void Rush::NoteChange() {
  const std::lock_guard lock(mutex_);
  changes_ = std::min(Changes() + 1, kMost);
  changed_ = clock_.SteadyNow();
}

double Rush::Changes() const {
  const std::chrono::duration<double> since = clock_.SteadyNow() - changed_;
  return std::max(changes_ - kLeak * since.count(), 0.0);
}

void Rush::Begin() {
  const std::lock_guard lock(mutex_);
  ++creations_;
}

void Rush::End(bool cancelled) {
  const std::lock_guard lock(mutex_);
  --creations_;
  if (!cancelled) ended_ = clock_.SteadyNow();
}

}  // namespace ringmaster::manager
