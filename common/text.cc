#include "common/text.h"

#include <fmt/format.h>

namespace ringmaster {

std::string WithCommas(int64_t number) {
  std::string digits = std::to_string(number);
  const int64_t first = number < 0 ? 1 : 0;
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > first; at -= 3)
    digits.insert(at, 1, ',');
  return digits;
}

std::string WithNoun(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string WithUnit(uint64_t bytes) {
  constexpr double kMega = 1e6, kGiga = 1e9;
  const auto b = static_cast<double>(bytes);
  return b >= kGiga ? fmt::format("{:.2f} GB", b / kGiga) : fmt::format("{:.2f} MB", b / kMega);
}

std::string WithTimeUnit(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.{}f} ms", seconds * 1e3, seconds >= 1e-2 ? 1 : 2);
  return fmt::format("{:.1f} µs", seconds * 1e6);
}

// Goes back to the last star where the rest does not fit.
bool Matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, after_star = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

}  // namespace ringmaster
