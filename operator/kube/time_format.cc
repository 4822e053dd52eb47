// FormatTime and ParseTime of object.h: RFC 3339 in UTC, by civil-calendar arithmetic of <chrono>,
// so that neither locale nor time zone data matters.
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "operator/kube/object.h"

namespace ringmaster::kube {
namespace {

using std::chrono::days;
using std::chrono::duration_cast;
using std::chrono::floor;
using std::chrono::microseconds;
using std::chrono::seconds;
using TimePoint = std::chrono::system_clock::time_point;

std::string FormatSeconds(TimePoint time) {
  const auto day = floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(floor<seconds>(time - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

// Takes `width` digits from the front of `text`.
std::optional<int> TakeNumber(std::string_view& text, std::size_t width) {
  if (text.size() < width) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + width, value);
  if (error != std::errc() || end != text.data() + width || text[0] == '-') return std::nullopt;
  text.remove_prefix(width);
  return value;
}

bool TakeCharacter(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

// ".123456": any number of digits, of which microseconds are kept.
std::optional<microseconds> TakeFraction(std::string_view& text) {
  if (!TakeCharacter(text, '.')) return microseconds(0);
  int value = 0;
  int digits = 0;
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9';
       text.remove_prefix(1), ++digits) {
    if (digits < 6) value = value * 10 + (text.front() - '0');
  }
  if (digits == 0) return std::nullopt;
  for (; digits < 6; ++digits) value *= 10;
  return microseconds(value);
}

// "Z" or "+01:00".
std::optional<seconds> TakeOffset(std::string_view& text) {
  if (TakeCharacter(text, 'Z')) return seconds(0);
  const bool behind = !text.empty() && text.front() == '-';
  if (!behind && (text.empty() || text.front() != '+')) return std::nullopt;
  text.remove_prefix(1);
  const auto hours = TakeNumber(text, 2);
  if (!hours || !TakeCharacter(text, ':')) return std::nullopt;
  const auto minutes = TakeNumber(text, 2);
  if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const seconds offset = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
  return behind ? -offset : offset;
}

}  // namespace

std::string FormatTime(TimePoint time) {
  return FormatSeconds(time) + "Z";
}

std::string FormatMicroTime(TimePoint time) {
  const auto fraction = duration_cast<microseconds>(time - floor<seconds>(time));
  return fmt::format("{}.{:06}Z", FormatSeconds(time), fraction.count());
}

std::optional<TimePoint> ParseTime(std::string_view text) {
  constexpr std::array<std::pair<int, char>, 6> kFields = {
      {{4, '-'}, {2, '-'}, {2, 'T'}, {2, ':'}, {2, ':'}, {2, '\0'}}};
  std::array<int, 6> values{};
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    const auto value = TakeNumber(text, static_cast<std::size_t>(kFields[i].first));
    if (!value) return std::nullopt;
    values[i] = *value;
    if (kFields[i].second != '\0' && !TakeCharacter(text, kFields[i].second)) return std::nullopt;
  }
  const auto fraction = TakeFraction(text);
  const auto offset = TakeOffset(text);
  const std::chrono::year_month_day date(std::chrono::year(values[0]),
                                         std::chrono::month(static_cast<unsigned>(values[1])),
                                         std::chrono::day(static_cast<unsigned>(values[2])));
  if (!fraction || !offset || !text.empty() || !date.ok()) return std::nullopt;
  if (values[3] > 23 || values[4] > 59 || values[5] > 60) return std::nullopt;
  return TimePoint(std::chrono::sys_days(date)) + std::chrono::hours(values[3]) +
         std::chrono::minutes(values[4]) + seconds(values[5]) + *fraction - *offset;
}

}  // namespace ringmaster::kube
