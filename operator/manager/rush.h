// Whether pods are being created, or start by the dozen. While they do, what only tells of things
// waits its time: events, counts in statuses, passes for pods that change one by one. The API
// server's processor is what is scarce then, and pods are what people wait for.
//
// Thread-safe.
#ifndef RINGMASTER_OPERATOR_MANAGER_RUSH_H_
#define RINGMASTER_OPERATOR_MANAGER_RUSH_H_

#include <chrono>
#include <mutex>
#include <optional>

#include "common/clock.h"

namespace ringmaster::manager {

// How long events wait for the end of a rush at most.
inline constexpr std::chrono::seconds kLongestRush{10};

class Rush {
 public:
  // `clock` must outlive the rush.
  explicit Rush(const Clock& clock) : clock_(clock) {}

  // Pods are being created as long as one of these lives. The rush must outlive it.
  class Creation {
   public:
    explicit Creation(Rush& rush) : rush_(rush) { rush_.Begin(); }
    ~Creation() { rush_.End(cancelled_); }
    Creation(const Creation&) = delete;
    Creation& operator=(const Creation&) = delete;

    // No pod was made: no rush follows from it.
    void Cancel() { cancelled_ = true; }

   private:
    Rush& rush_;
    bool cancelled_ = false;
  };

  // A pod that was known has changed, as the operator's watch shows it.
  void NoteChange();

  // Whether pods are being created, or were a moment ago (the next job's may follow), or more than
  // 50 have changed in about the last second.
  bool IsOn() const;

 private:
  void Begin();
  void End(bool cancelled);
  double Changes() const;  // needs mutex_

  const Clock& clock_;
  mutable std::mutex mutex_;
  int creations_ = 0;                // guarded by mutex_
  std::optional<SteadyTime> ended_;  // the last one; guarded by mutex_, as are the next
  double changes_ = 0;               // a bucket that leaks: those of about the last second
  SteadyTime changed_{};             // when it was last filled
};

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_RUSH_H_
