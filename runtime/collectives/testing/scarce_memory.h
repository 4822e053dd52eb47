// Memory that runs out where a test says so. A program that links this has another operator new.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TESTING_SCARCE_MEMORY_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TESTING_SCARCE_MEMORY_H_

#include <cstdint>

namespace ringmaster::collectives::testing {

// operator new grants this thread `count` more requests, fails once (std::bad_alloc), and grants
// all from then on.
void FailAfter(int64_t count);

// Ends that. Whether it has failed.
bool HasFailed();

}  // namespace ringmaster::collectives::testing

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TESTING_SCARCE_MEMORY_H_
