// Processors of this machine by their numbers, and lists of them as Linux writes them: "0-3,8".
//
// Thread-safe.
#ifndef RINGMASTER_COMMON_CPU_LIST_H_
#define RINGMASTER_COMMON_CPU_LIST_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

// Ascending, each once. Nothing when the text is no such list, is empty, or names a processor that
// no affinity mask of ours has room for.
std::optional<std::vector<int>> ParseCpuList(std::string_view text);

// The shortest such text; empty for none. The order of `cpus` does not matter.
std::string FormatCpuList(std::span<const int> cpus);

// Those that the calling thread may run on, ascending; {0} where the system does not say.
std::vector<int> AllowedCpus();

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_CPU_LIST_H_
