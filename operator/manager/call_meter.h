// How long one pass waits for API calls, and what processor time its thread takes. Belongs to that
// thread.
#ifndef RINGMASTER_OPERATOR_MANAGER_CALL_METER_H_
#define RINGMASTER_OPERATOR_MANAGER_CALL_METER_H_

#include <chrono>
#include <ctime>

#include "common/clock.h"

namespace ringmaster::manager {

class CallMeter {
 public:
  explicit CallMeter(const Clock& clock) : clock_(clock), began_(ThreadTime()) {}

  // Makes the calls, which may be several at once, and returns their result.
  template <typename Calls>
  auto Time(const Calls& calls) {
    const SteadyTime start = clock_.SteadyNow();
    auto result = calls();
    in_calls_ += clock_.SteadyNow() - start;
    called_ = true;
    return result;
  }

  bool called() const { return called_; }
  Duration in_calls() const { return std::chrono::duration_cast<Duration>(in_calls_); }
  // Of the processor, since the meter was made; what the thread computes for its calls included. A
  // busy machine, which lets the thread wait, does not count.
  Duration own() const { return ThreadTime() - began_; }

 private:
  static Duration ThreadTime() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::duration_cast<Duration>(std::chrono::seconds(now.tv_sec) +
                                                std::chrono::nanoseconds(now.tv_nsec));
  }

  const Clock& clock_;
  const Duration began_;
  SteadyTime::duration in_calls_{};
  bool called_ = false;
};

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_CALL_METER_H_
