#include "launcher/cpu_binding.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sched.h>
#include <set>

#include <fmt/format.h>

namespace ringmaster::launcher {
namespace {

std::optional<int> ParseNumber(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

absl::Status Malformed(std::string_view text) {
  return absl::InvalidArgumentError(
      fmt::format("'{}' is no list of processors (0-3,8) and no share of them (1/4)", text));
}

std::optional<std::pair<int, int>> ParseRange(std::string_view text) {
  const size_t dash = text.find('-');
  const std::optional<int> first = ParseNumber(text.substr(0, dash));
  const std::optional<int> last =
      dash == std::string_view::npos ? first : ParseNumber(text.substr(dash + 1));
  if (!first || !last || *first > *last || *last >= CPU_SETSIZE) return std::nullopt;
  return std::pair(*first, *last);
}

absl::StatusOr<std::vector<int>> ChooseShare(std::string_view text, size_t slash,
                                             const std::vector<int>& allowed) {
  const std::optional<int> part = ParseNumber(text.substr(0, slash));
  const std::optional<int> parts = ParseNumber(text.substr(slash + 1));
  if (!part || !parts || *part >= *parts) return Malformed(text);
  const size_t begin = allowed.size() * *part / *parts;
  const size_t end = std::max(begin + 1, allowed.size() * (*part + 1) / *parts);
  return std::vector<int>(allowed.begin() + begin, allowed.begin() + end);
}

}  // namespace

absl::StatusOr<std::vector<int>> ChooseCpus(std::string_view text,
                                            const std::vector<int>& allowed) {
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos) return ChooseShare(text, slash, allowed);
  std::set<int> chosen;
  std::string_view rest = text;
  while (true) {
    const size_t comma = rest.find(',');
    const auto range = ParseRange(rest.substr(0, comma));
    if (!range) return Malformed(text);
    for (int cpu = range->first; cpu <= range->second; ++cpu) {
      if (std::binary_search(allowed.begin(), allowed.end(), cpu)) chosen.insert(cpu);
    }
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (chosen.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("none of the processors '{}' may be used here", text));
  }
  return std::vector<int>(chosen.begin(), chosen.end());
}

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace ringmaster::launcher
