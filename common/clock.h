// Time as a dependency. Code that decides by the time takes a Clock, so that a test turns it by
// hand. Wall time (Time) is for people and for objects; a duration is always measured on the steady
// clock. SystemClock is thread-safe and lives for ever; FakeClock is thread-safe.
#ifndef RINGMASTER_COMMON_CLOCK_H_
#define RINGMASTER_COMMON_CLOCK_H_

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace ringmaster {

using Duration = std::chrono::microseconds;
using Time = std::chrono::time_point<std::chrono::system_clock, Duration>;
using SteadyTime = std::chrono::steady_clock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time Now() const = 0;
  virtual SteadyTime SteadyNow() const = 0;
};

// The machine's clock.
const Clock& SystemClock();

// A clock that stands still until it is advanced; both its times move together.
class FakeClock : public Clock {
 public:
  // Starts at 2026-01-01T00:00:00Z unless told otherwise.
  FakeClock();
  explicit FakeClock(Time start);
  Time Now() const override;
  SteadyTime SteadyNow() const override;
  void Advance(Duration by);

 private:
  mutable std::mutex mutex_;
  Time now_;
  SteadyTime steady_;
};

// RFC 3339 in UTC: "2026-11-21T03:31:29Z", with ".123456" where the microseconds are not zero.
std::string FormatTime(Time time);

// Reads what FormatTime writes and any other RFC 3339 date-time, with an offset or a fraction of 1
// to 9 digits. kInvalidArgument otherwise.
absl::StatusOr<Time> ParseTime(std::string_view text);

// For people, as kubectl writes ages: "0.3 s", "14 s", "2m5s", "3h10m", "4d2h".
std::string FormatDuration(Duration duration);

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_CLOCK_H_
