// Memory for what oneDNN makes anew in each call: a table of the arguments, and copies of what its
// parallel loops run. It takes that from operator new, and its interface takes nothing in its
// place; so a program that links rm_operator_new replaces operator new by one that cuts small
// blocks from memory that is kept. Where it does not (libringmaster.so leaves its user's operator
// new alone, and sanitizers have theirs), the heap serves, and a CallMemory changes nothing.
#ifndef RINGMASTER_RUNTIME_KERNELS_ONEDNN_CALL_MEMORY_H_
#define RINGMASTER_RUNTIME_KERNELS_ONEDNN_CALL_MEMORY_H_

#include <cstddef>

namespace ringmaster::kernels::onednn {

// So many threads of a process have memory for calls at a time; any more do without, and take it
// from the heap.
inline constexpr int kSlabs = 256;

// While one lives, small requests to operator new do not reach the heap: this thread's, and those
// of any OpenMP team in its parallel regions. What is not freed when it ends stays good, and is
// freed as anything else by any thread. Each thread keeps 4 kB once it has needed some, and beside
// it what is shared with blocks that were not freed. Never waits.
class CallMemory {
 public:
  CallMemory();
  ~CallMemory();
  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;
};

// For operator new: `bytes` of this thread's memory; null outside of a call, and where it is full.
void* TakeCallMemory(size_t bytes);

// For operator delete: frees `block` if it came from a call's memory, of whichever thread, and says
// whether it did.
bool FreeCallMemory(const void* block);

}  // namespace ringmaster::kernels::onednn

#endif  // RINGMASTER_RUNTIME_KERNELS_ONEDNN_CALL_MEMORY_H_
