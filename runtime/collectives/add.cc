#include "runtime/collectives/add.h"

#include <cstring>
#include <limits>

namespace ringmaster::collectives {
namespace {

template <typename T>
T AddOne(T left, T right) {
  const T sum = left + right;
  return sum == sum ? sum : std::numeric_limits<T>::quiet_NaN();
}

// Explicit vectors, because at -O2 the compiler would not make any, and could not where arrays
// overlap.
template <typename T>
void AddAll(T* out, const T* left, const T* right, size_t count) {
  constexpr size_t kBytes = 64;
  constexpr size_t kLanes = kBytes / sizeof(T);
  typedef T Vector __attribute__((vector_size(kBytes)));
  const Vector nan = Vector{} + std::numeric_limits<T>::quiet_NaN();
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Vector a;
    Vector b;
    std::memcpy(&a, left + i, kBytes);
    std::memcpy(&b, right + i, kBytes);
    Vector sum = a + b;
    sum = sum == sum ? sum : nan;
    std::memcpy(out + i, &sum, kBytes);
  }
  for (; i < count; ++i) out[i] = AddOne(left[i], right[i]);
}

}  // namespace

void Add(float* out, const float* left, const float* right, size_t count) {
  AddAll(out, left, right, count);
}

void Add(double* out, const double* left, const double* right, size_t count) {
  AddAll(out, left, right, count);
}

}  // namespace ringmaster::collectives
