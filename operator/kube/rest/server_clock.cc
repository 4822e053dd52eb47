#include "operator/kube/rest/server_clock.h"

#include <algorithm>
#include <ctime>

namespace ringmaster::kube::rest {
namespace {

constexpr Duration kCut = std::chrono::seconds(1);  // what a date leaves out, at most
constexpr int kSlew = 20;                           // of what has passed, one part in so many

std::optional<Time> ParseDate(const std::string& date) {
  std::tm parts{};
  const char* end = ::strptime(date.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return Time(std::chrono::seconds(::timegm(&parts)));
}

Duration Between(SteadyTime from, SteadyTime to) {
  return std::chrono::duration_cast<Duration>(to - from);
}

}  // namespace

Time ServerClock::After(const Reading& reading, SteadyTime now) {
  return reading.time + Between(reading.at, now);
}

Time ServerClock::Now() const {
  const std::lock_guard lock(mutex_);
  return last_ ? After(*last_, own_.SteadyNow()) : own_.Now();
}

void ServerClock::Observe(const std::string& date, SteadyTime asked) {
  const std::optional<Time> least = ParseDate(date);
  if (!least) return;
  const std::lock_guard lock(mutex_);
  const SteadyTime now = own_.SteadyNow();
  const Time most = *least + Between(asked, now) + kCut;
  if (!last_) {
    last_ = {std::clamp(own_.Now(), *least, most), now};
    return;
  }
  const Time shown = After(*last_, now);
  const Duration slew = Between(last_->at, now) / kSlew;
  last_ = {shown + std::clamp(std::clamp(shown, *least, most) - shown, -slew, slew), now};
}

}  // namespace ringmaster::kube::rest
