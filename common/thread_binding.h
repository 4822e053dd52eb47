// Binds the threads of a program that computes to cores: what is asked for, which processors that
// comes to here, and the environment in which such a program is then started.
//
// The OpenMP runtime of the program binds the threads of its team itself, each new one too, from
// OMP_PLACES, which it reads when it is loaded; so this is decided before the program starts.
#ifndef RINGMASTER_COMMON_THREAD_BINDING_H_
#define RINGMASTER_COMMON_THREAD_BINDING_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/bind_request.h"
#include "common/cpu_limit.h"
#include "common/cpu_topology.h"

namespace ringmaster {

// What a process is confined to.
struct BindingPlace {
  std::vector<int> allowed;  // processors that its threads may run on
  std::vector<Core> cores;   // those of them that are this process's own
  CpuLimit limit;
};

struct ThreadBinding {
  std::vector<int> compute;  // by the number of the thread
  std::vector<int> others;   // where all other threads run, ascending
};

// kFailedPrecondition says why threads had better not be bound here: there are too few processors,
// or processor time is limited to less than them, so that others run on them too. Pure.
absl::StatusOr<ThreadBinding> PlanBinding(const BindRequest& request, const BindingPlace& place);

// kPermissionDenied and the like when the system does not let this process bind threads so. Asks
// it with a thread that ends; the calling thread's affinity stays as it is.
absl::Status CheckMayBind(const ThreadBinding& binding);

// What a program is started with so that its threads are bound: the variables of OpenMP, and
// RINGMASTER_OTHER_CPUS for its own (runtime/device/thread_cpus.h).
std::map<std::string, std::string> BindingEnvironment(const ThreadBinding& binding);

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_THREAD_BINDING_H_
