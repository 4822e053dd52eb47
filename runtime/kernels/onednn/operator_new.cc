// The operator new of programs that train: the C library's heap, but for what a CallMemory has.
// All other forms of new and delete call these, but for those of an alignment beyond the default,
// which go to the heap by themselves.
#include <cstddef>
#include <cstdlib>
#include <new>

#include "runtime/kernels/onednn/call_memory.h"

// Sanitizers tell apart what was taken by which operator, with operators of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

using ringmaster::kernels::onednn::FreeCallMemory;
using ringmaster::kernels::onednn::TakeCallMemory;

void* operator new(size_t bytes) {
  if (bytes == 0) bytes = 1;  // an address that nobody else has
  if (void* const block = TakeCallMemory(bytes)) return block;
  while (true) {
    if (void* const block = std::malloc(bytes)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* block) noexcept {
  if (!FreeCallMemory(block)) std::free(block);
}

void operator delete(void* block, size_t /*bytes*/) noexcept {
  operator delete(block);
}

#endif
