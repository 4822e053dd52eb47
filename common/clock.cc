#include "common/clock.h"

#include <cstdio>
#include <ctime>

#include <fmt/format.h>

namespace ringmaster {
namespace {

class MachineClock : public Clock {
 public:
  Time Now() const override {
    return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  }
  SteadyTime SteadyNow() const override { return std::chrono::steady_clock::now(); }
};

constexpr std::time_t kNewYear2026 = 1767225600;

// Reads exactly `width` digits from the front of `text`.
bool TakeDigits(std::string_view& text, int width, int& value) {
  if (static_cast<int>(text.size()) < width) return false;
  value = 0;
  for (int i = 0; i < width; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(width);
  return true;
}

bool TakeChar(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// A fraction of a second as microseconds; digits past the sixth are dropped.
bool TakeFraction(std::string_view& text, int64_t& micros) {
  micros = 0;
  if (text.empty() || text[0] != '.') return true;
  text.remove_prefix(1);
  int digits = 0;
  for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; text.remove_prefix(1), ++digits) {
    if (digits < 6) micros = micros * 10 + (text[0] - '0');
  }
  if (digits == 0 || digits > 9) return false;
  for (; digits < 6; ++digits) micros *= 10;
  return true;
}

bool TakeOffset(std::string_view& text, std::chrono::minutes& offset) {
  offset = std::chrono::minutes(0);
  if (TakeChar(text, "Zz")) return true;
  const bool negative = !text.empty() && text[0] == '-';
  int hours = 0;
  int minutes = 0;
  if (!TakeChar(text, "+-") || !TakeDigits(text, 2, hours) || !TakeChar(text, ":") ||
      !TakeDigits(text, 2, minutes) || hours > 23 || minutes > 59) {
    return false;
  }
  offset = std::chrono::minutes((negative ? -1 : 1) * (hours * 60 + minutes));
  return true;
}

}  // namespace

const Clock& SystemClock() {
  static const MachineClock* clock = new MachineClock;
  return *clock;
}

FakeClock::FakeClock() : FakeClock(Time(std::chrono::seconds(kNewYear2026))) {}

FakeClock::FakeClock(Time start) : now_(start), steady_(std::chrono::hours(1)) {}

Time FakeClock::Now() const {
  std::lock_guard lock(mutex_);
  return now_;
}

SteadyTime FakeClock::SteadyNow() const {
  std::lock_guard lock(mutex_);
  return steady_;
}

void FakeClock::Advance(Duration by) {
  std::lock_guard lock(mutex_);
  now_ += by;
  steady_ += by;
}

std::string FormatTime(Time time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const std::time_t seconds = std::chrono::system_clock::to_time_t(whole);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::string text =
      fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                  parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
  const auto micros = (time - whole).count();
  if (micros != 0) text += fmt::format(".{:06}", micros);
  return text + "Z";
}

absl::StatusOr<Time> ParseTime(std::string_view text) {
  const auto bad = absl::InvalidArgumentError(
      fmt::format("'{}' is not an RFC 3339 date and time such as 2026-11-21T03:31:29Z", text));
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  int64_t micros = 0;
  std::chrono::minutes offset;
  if (!TakeDigits(text, 4, year) || !TakeChar(text, "-") || !TakeDigits(text, 2, month) ||
      !TakeChar(text, "-") || !TakeDigits(text, 2, day) || !TakeChar(text, "Tt ") ||
      !TakeDigits(text, 2, hour) || !TakeChar(text, ":") || !TakeDigits(text, 2, minute) ||
      !TakeChar(text, ":") || !TakeDigits(text, 2, second) || !TakeFraction(text, micros) ||
      !TakeOffset(text, offset) || !text.empty()) {
    return bad;
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return bad;
  return Time(std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
              std::chrono::minutes(minute) - offset + std::chrono::seconds(second) +
              std::chrono::microseconds(micros));
}

std::string FormatDuration(Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 2 * 3600) return fmt::format("{}m{}s", whole / 60, whole % 60);
  if (whole < 48 * 3600) return fmt::format("{}h{}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}d{}h", whole / 86400, whole / 3600 % 24);
}

}  // namespace ringmaster
