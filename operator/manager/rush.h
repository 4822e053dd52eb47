// Whether pods are being created. While they are, what only tells of things waits its time: events,
// counts in statuses, passes for pods that come one by one. The API server's processor is what is
// scarce then, and pods are what people wait for.
//
// Thread-safe.
#ifndef RINGMASTER_OPERATOR_MANAGER_RUSH_H_
#define RINGMASTER_OPERATOR_MANAGER_RUSH_H_

#include <chrono>
#include <mutex>
#include <optional>

#include "common/clock.h"

namespace ringmaster::manager {

// How long whatever waits for the end of a rush waits at most.
inline constexpr std::chrono::seconds kLongestRush{10};

class Rush {
 public:
  // `clock` must outlive the rush.
  explicit Rush(const Clock& clock) : clock_(clock) {}

  // Pods are being created as long as one of these lives. The rush must outlive it.
  class Creation {
   public:
    explicit Creation(Rush& rush) : rush_(rush) { rush_.Begin(); }
    ~Creation() { rush_.End(); }
    Creation(const Creation&) = delete;
    Creation& operator=(const Creation&) = delete;

   private:
    Rush& rush_;
  };

  // Whether pods are being created, or were a moment ago: the next job's may follow.
  bool IsOn() const;

 private:
  void Begin();
  void End();

  const Clock& clock_;
  mutable std::mutex mutex_;
  int creations_ = 0;                // guarded by mutex_
  std::optional<SteadyTime> ended_;  // the last one; guarded by mutex_
};

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_RUSH_H_
