#include "common/cpu_list.h"

#include <algorithm>
#include <charconv>
#include <sched.h>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace ringmaster {
namespace {

std::optional<int> ParseCpu(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < 0 || value >= CPU_SETSIZE) return std::nullopt;
  return value;
}

std::optional<std::pair<int, int>> ParseRange(std::string_view text) {
  const size_t dash = text.find('-');
  const std::optional<int> first = ParseCpu(text.substr(0, dash));
  const std::optional<int> last =
      dash == std::string_view::npos ? first : ParseCpu(text.substr(dash + 1));
  if (!first || !last || *first > *last) return std::nullopt;
  return std::pair(*first, *last);
}

}  // namespace

std::optional<std::vector<int>> ParseCpuList(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);  // as the system's files end
  std::set<int> cpus;
  while (true) {
    const size_t comma = text.find(',');
    const auto range = ParseRange(text.substr(0, comma));
    if (!range) return std::nullopt;
    for (int cpu = range->first; cpu <= range->second; ++cpu) cpus.insert(cpu);
    if (comma == std::string_view::npos) return std::vector<int>(cpus.begin(), cpus.end());
    text.remove_prefix(comma + 1);
  }
}

std::string FormatCpuList(std::span<const int> cpus) {
  const std::set<int> sorted(cpus.begin(), cpus.end());
  std::string text;
  for (auto at = sorted.begin(); at != sorted.end();) {
    const int first = *at;
    int last = first;
    while (++at != sorted.end() && *at == last + 1) last = *at;
    if (!text.empty()) text += ',';
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return text;
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

}  // namespace ringmaster
