#include "common/cpu_topology.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "common/cpu_list.h"
#include "common/file.h"

namespace ringmaster {
namespace {

constexpr size_t kMostBytes = 64 * 1024;  // of a list in a file

std::optional<std::vector<int>> ReadList(const std::filesystem::path& path) {
  const auto text = ReadFile(path, kMostBytes);
  return text.ok() ? ParseCpuList(*text) : std::nullopt;
}

// The number of "node12".
std::optional<int> DomainOf(std::string_view folder) {
  constexpr std::string_view kPrefix = "node";
  if (!folder.starts_with(kPrefix)) return std::nullopt;
  folder.remove_prefix(kPrefix.size());
  int domain = 0;
  const auto [end, error] = std::from_chars(folder.data(), folder.data() + folder.size(), domain);
  if (error != std::errc() || end != folder.data() + folder.size()) return std::nullopt;
  return domain;
}

std::map<int, int> ReadDomains(const std::filesystem::path& nodes) {
  std::map<int, int> domains;  // by processor
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(nodes, error)) {
    const std::optional<int> domain = DomainOf(entry.path().filename().string());
    if (!domain) continue;
    const auto cpus = ReadList(entry.path() / "cpulist");
    for (const int cpu : cpus.value_or(std::vector<int>())) domains[cpu] = *domain;
  }
  return domains;
}

// All hardware threads of the processor's core, itself included.
std::vector<int> SiblingsOf(int cpu, const std::filesystem::path& cpus) {
  const auto topology = cpus / fmt::format("cpu{}", cpu) / "topology";
  for (const char* name : {"core_cpus_list", "thread_siblings_list"}) {  // the newer name first
    auto siblings = ReadList(topology / name);
    if (siblings && std::ranges::binary_search(*siblings, cpu)) return *std::move(siblings);
  }
  return {cpu};
}

std::map<int, size_t> CountByDomain(const std::vector<Core>& cores) {
  std::map<int, size_t> counts;
  for (const Core& core : cores) ++counts[core.domain];
  return counts;
}

// All processors: first of every core one, then of every core the second, and so on.
std::vector<int> SpreadOut(const std::vector<Core>& cores) {
  std::vector<int> cpus;
  bool more = true;
  for (size_t place = 0; more; ++place) {
    more = false;
    for (const Core& core : cores) {
      if (place >= core.cpus.size()) continue;
      cpus.push_back(core.cpus[place]);
      more = true;
    }
  }
  return cpus;
}

// The items of part `part`; at least one.
template <typename T>
std::span<const T> Slice(const std::vector<T>& items, size_t part, size_t parts) {
  const size_t begin = items.size() * part / parts;
  const size_t end = std::max(begin + 1, items.size() * (part + 1) / parts);
  return std::span<const T>(items).subspan(begin, end - begin);
}

std::vector<int> AllOf(std::span<const Core> cores) {
  std::vector<int> cpus;
  for (const Core& core : cores) cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  return cpus;
}

}  // namespace

std::vector<Core> ReadCores(std::span<const int> allowed, const std::filesystem::path& system) {
  std::set<int> left(allowed.begin(), allowed.end());
  if (const auto online = ReadList(system / "cpu" / "online")) {
    std::set<int> there;
    std::ranges::set_intersection(left, *online, std::inserter(there, there.end()));
    // A container may be shown another machine's list than the one that its processors are in.
    if (!there.empty()) left = std::move(there);
  }
  const std::map<int, int> domains = ReadDomains(system / "node");
  std::vector<Core> cores;
  while (!left.empty()) {
    const int first = *left.begin();
    Core core;
    for (const int cpu : SiblingsOf(first, system / "cpu")) {
      if (left.erase(cpu) > 0) core.cpus.push_back(cpu);
    }
    const auto domain = domains.find(first);
    core.domain = domain == domains.end() ? 0 : domain->second;
    cores.push_back(std::move(core));
  }
  SortCores(cores);
  return cores;
}

void SortCores(std::vector<Core>& cores) {
  std::ranges::sort(cores, {},
                    [](const Core& core) { return std::pair(core.domain, core.cpus.front()); });
}

std::optional<std::vector<Core>> TakeCores(std::vector<Core>& free, size_t count) {
  if (free.size() < count) return std::nullopt;
  std::vector<Core> taken;
  while (taken.size() < count) {
    const std::map<int, size_t> counts = CountByDomain(free);
    const int domain = std::ranges::max_element(counts, {}, &std::pair<const int, size_t>::second)
                           ->first;  // the first of those that have the most
    for (auto at = free.begin(); at != free.end() && taken.size() < count;) {
      if (at->domain != domain) {
        ++at;
        continue;
      }
      taken.push_back(std::move(*at));
      at = free.erase(at);
    }
  }
  SortCores(taken);
  return taken;
}

std::vector<int> PartOf(const std::vector<Core>& cores, size_t part, size_t parts) {
  std::vector<int> cpus;
  if (cores.size() >= parts) {
    cpus = AllOf(Slice(cores, part, parts));
  } else {
    const std::vector<int> all = AllOf(cores);
    const auto slice = Slice(all, part, parts);
    cpus.assign(slice.begin(), slice.end());
  }
  std::ranges::sort(cpus);
  return cpus;
}

std::optional<ThreadCpus> PlaceThreads(const std::vector<Core>& cores, size_t threads,
                                       size_t communication) {
  ThreadCpus placed;
  if (cores.size() >= threads + communication) {
    std::vector<Core> taken = cores;
    taken = *TakeCores(taken, threads + communication);
    for (size_t i = 0; i < threads; ++i) placed.compute.push_back(taken[i].cpus.front());
    placed.communication = AllOf(std::span(taken).subspan(threads));
  } else {
    std::vector<int> cpus = SpreadOut(cores);
    if (cpus.size() < threads + communication) return std::nullopt;
    placed.communication.assign(cpus.end() - static_cast<ptrdiff_t>(communication), cpus.end());
    cpus.resize(threads);
    placed.compute = std::move(cpus);
  }
  std::ranges::sort(placed.communication);
  return placed;
}

}  // namespace ringmaster
