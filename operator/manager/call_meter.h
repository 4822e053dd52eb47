// What one pass spends on API calls, so that its own part can be told. Belongs to the pass's
// thread.
#ifndef RINGMASTER_OPERATOR_MANAGER_CALL_METER_H_
#define RINGMASTER_OPERATOR_MANAGER_CALL_METER_H_

#include <chrono>

#include "common/clock.h"

namespace ringmaster::manager {

class CallMeter {
 public:
  explicit CallMeter(const Clock& clock) : clock_(clock), began_(clock.SteadyNow()) {}

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
  // Since the meter was made, without the calls.
  Duration own() const {
    return std::chrono::duration_cast<Duration>(clock_.SteadyNow() - began_ - in_calls_);
  }

 private:
  const Clock& clock_;
  const SteadyTime began_;
  SteadyTime::duration in_calls_{};
  bool called_ = false;
};

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_CALL_METER_H_
