#include "runtime/collectives/add.h"

#include <algorithm>
#include <span>

#include "runtime/collectives/compression/half_convert.h"
#include "runtime/collectives/elementwise.h"

namespace ringmaster::collectives {
namespace {

template <typename T>
void AddAll(T* out, const T* left, const T* right, size_t count) {
  Elementwise<T, Sum>(reinterpret_cast<std::byte*>(out), reinterpret_cast<const std::byte*>(left),
                      reinterpret_cast<const std::byte*>(right), count);
}

}  // namespace

void Add(float* out, const float* left, const float* right, size_t count) {
  AddAll(out, left, right, count);
}

void Add(double* out, const double* left, const double* right, size_t count) {
  AddAll(out, left, right, count);
}

void Add(BFloat16* out, const BFloat16* left, const BFloat16* right, size_t count) {
  constexpr size_t kAtOnce = 256;  // stays in the nearest cache
  float a[kAtOnce];
  float b[kAtOnce];
  for (size_t done = 0; done < count; done += kAtOnce) {
    const size_t n = std::min(kAtOnce, count - done);
    Decode(std::span(left + done, n), std::span(a, n));
    Decode(std::span(right + done, n), std::span(b, n));
    AddAll(a, a, b, n);
    Encode(std::span<const float>(a, n), std::span(out + done, n));
  }
}

void Add(HalfBlock* out, const HalfBlock* left, const HalfBlock* right, size_t count) {
  float a[HalfBlock::kValues];
  float b[HalfBlock::kValues];
  for (size_t i = 0; i < count; ++i) {
    DecodeBlock(left[i], a);
    DecodeBlock(right[i], b);
    AddAll(a, a, b, HalfBlock::kValues);
    EncodeBlock(a, &out[i]);
  }
}

}  // namespace ringmaster::collectives
