// How processors belong together: the hardware threads of one core, the cores of one NUMA domain.
#ifndef RINGMASTER_COMMON_CPU_TOPOLOGY_H_
#define RINGMASTER_COMMON_CPU_TOPOLOGY_H_

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

namespace ringmaster {

// A physical core: those of its hardware threads that may be used, ascending; at least one.
struct Core {
  std::vector<int> cpus;
  int domain = 0;  // the NUMA domain whose memory is near

  bool operator==(const Core&) const = default;
};

// The cores that `allowed` (ascending) makes up, by domain and then by first processor. A processor
// that is offline is left out, unless all would be; one of which nothing is known is a core of its
// own, in domain 0. Reads `system`, which is another folder in tests.
std::vector<Core> ReadCores(std::span<const int> allowed,
                            const std::filesystem::path& system = "/sys/devices/system");

// Puts cores into the order in which ReadCores gives them.
void SortCores(std::vector<Core>& cores);

// Takes `count` whole cores out of `free`, which is as ReadCores gives it and stays so: all of one
// domain where one has as many, of the domain that has the most left, so that takers spread over
// domains. Nothing, and `free` as it was, where there are fewer.
std::optional<std::vector<Core>> TakeCores(std::vector<Core>& free, size_t count);

// The part `part` (from 0) of `parts` even ones, as processors, ascending: whole cores, domain by
// domain, or single processors where there are fewer cores than parts. With fewer processors than
// parts, neighbours share one.
std::vector<int> PartOf(const std::vector<Core>& cores, size_t part, size_t parts);

// Which processors the threads of one process are given.
struct ThreadCpus {
  std::vector<int> compute;        // by the thread's number; each once
  std::vector<int> communication;  // ascending
};

// Gives each of `threads` a core of its own, and `communication` whole cores to the threads that
// move data. Where there are too few cores for that, hardware threads take their place; nothing
// where there are too few of these too, for threads of one team that share a processor wait for
// one another.
std::optional<ThreadCpus> PlaceThreads(const std::vector<Core>& cores, size_t threads,
                                       size_t communication);

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_CPU_TOPOLOGY_H_
