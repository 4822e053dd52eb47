#include "common/count_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> allocations{0};
std::atomic<size_t> largest{0};

void Count(size_t bytes) {
  ++allocations;
  if (bytes > largest) largest = bytes;
}

void* Allocate(size_t bytes) {
  Count(bytes);
  void* const p = std::malloc(bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

void* AllocateAligned(size_t bytes, std::align_val_t alignment) {
  Count(bytes);
  const auto grid = static_cast<size_t>(alignment);
  void* const p = std::aligned_alloc(grid, (bytes + grid - 1) / grid * grid);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

namespace ringmaster {

int64_t CountAllocations() {
  return allocations;
}

size_t TakeLargestAllocation() {
  return largest.exchange(0);
}

}  // namespace ringmaster

void* operator new(size_t bytes) {
  return Allocate(bytes);
}
void* operator new[](size_t bytes) {
  return Allocate(bytes);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return AllocateAligned(bytes, alignment);
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return AllocateAligned(bytes, alignment);
}
// std::stable_sort and its like ask this way; a new of one kind and a delete of another would not
// match.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  Count(bytes);
  return std::malloc(bytes);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  Count(bytes);
  return std::malloc(bytes);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}
