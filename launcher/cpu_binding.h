// Which processors a worker's program runs on.
//
// RINGMASTER_CPUS is a list of processors as Linux writes it ("0-3,8"), or a share "i/n": the i-th
// (from 0) of n even parts of those that the launcher itself may use, so that the workers of one
// machine do not wander over one another. With fewer processors than parts, neighbours share one.
#ifndef RINGMASTER_LAUNCHER_CPU_BINDING_H_
#define RINGMASTER_LAUNCHER_CPU_BINDING_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ringmaster::launcher {

// The processors of the text, in order and each once, out of `allowed` (ascending, not empty).
// kInvalidArgument when the text is neither form, or names none that is allowed.
absl::StatusOr<std::vector<int>> ChooseCpus(std::string_view text, const std::vector<int>& allowed);

// Those that the calling thread may run on.
std::vector<int> AllowedCpus();

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_CPU_BINDING_H_
