// Lines of the processor's cache, in which shared memory is given out.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_LINE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_LINE_H_

#include <cstddef>

namespace ringmaster::collectives::shm {

inline constexpr size_t kLine = 64;

constexpr size_t WholeLines(size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace ringmaster::collectives::shm

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_LINE_H_
