// How shared memory is given out: in lines of the processor's cache, and in pieces.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_LINE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_LINE_H_

#include <cstddef>

namespace ringmaster::collectives::shm {

inline constexpr size_t kLine = 64;

// Of a message, what lies together: small enough that the receiver begins early, large enough that
// a slot costs little.
inline constexpr size_t kMaxPiece = 32 * 1024;

constexpr size_t WholeLines(size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace ringmaster::collectives::shm

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_SHM_LINE_H_
