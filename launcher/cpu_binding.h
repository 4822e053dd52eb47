// Which processors a worker's program runs on.
//
// RINGMASTER_CPUS is a list of processors as Linux writes it ("0-3,8"), or a share "i/n": the i-th
// (from 0) of n even parts of those that the launcher itself may use, so that the workers of one
// machine do not wander over one another: whole cores, NUMA domain by domain.
//
// Where the job asks for it (RINGMASTER_BIND), the threads of the trainer are bound inside of them,
// each to a core of its own.
#ifndef RINGMASTER_LAUNCHER_CPU_BINDING_H_
#define RINGMASTER_LAUNCHER_CPU_BINDING_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cpu_topology.h"

namespace ringmaster::launcher {

// The processors of the text, ascending and each once, out of those of `cores` (at least one).
// kInvalidArgument when the text is neither form, or names none of them.
absl::StatusOr<std::vector<int>> ChooseCpus(std::string_view text, const std::vector<Core>& cores);

// What the trainer's environment says so that its threads are bound as `request` asks for
// (common/thread_binding.h), given the processors that it is confined to and RINGMASTER_CORES.
// Empty where `request` is. An error is no reason not to start it, unbound: kFailedPrecondition and
// the like say why it cannot be bound here, kInvalidArgument which variable is malformed.
absl::StatusOr<std::map<std::string, std::string>> BindingFor(const std::string& request,
                                                              const std::vector<int>& confined,
                                                              const std::string& kept);

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_CPU_BINDING_H_
