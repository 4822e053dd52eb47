// On which processors the threads of this process run.
//
// The threads of the OpenMP team are bound by the OpenMP runtime, if the environment says so when
// the process starts (common/thread_binding.h). The first thread is one of them, and a thread takes
// after the one that made it: without PlaceOtherThreads all others would crowd on its processor.
#ifndef RINGMASTER_RUNTIME_DEVICE_THREAD_CPUS_H_
#define RINGMASTER_RUNTIME_DEVICE_THREAD_CPUS_H_

#include <span>
#include <vector>

#include "absl/status/status.h"

namespace ringmaster::device {

// From now on every new thread of this process runs on these processors, whoever makes it, but
// those that ask for others when they are made, as the OpenMP runtime's do. Errors are the
// system's; nothing has changed then. Before other threads are made.
absl::Status PlaceOtherThreads(std::span<const int> cpus);

// Does so with the processors of RINGMASTER_OTHER_CPUS; nothing where it is not set.
// kInvalidArgument when it is malformed.
absl::Status PlaceOtherThreadsAsTold();

// The one processor of each thread of the calling thread's OpenMP team (threads.h), by the thread's
// number; empty where one of them may run on several. Makes the team if there is none yet.
std::vector<int> TeamCpus();

}  // namespace ringmaster::device

#endif  // RINGMASTER_RUNTIME_DEVICE_THREAD_CPUS_H_
