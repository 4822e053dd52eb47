// Loops in the widest vectors that may be used (vectors.h), from one source.
#ifndef RINGMASTER_RUNTIME_DEVICE_WIDE_H_
#define RINGMASTER_RUNTIME_DEVICE_WIDE_H_

#include "runtime/device/vectors.h"

namespace ringmaster::device {

#if defined(__x86_64__)
// All that the body calls becomes part of these, so that it is compiled for that processor. With
// FMA, as what files compiled for AVX2 and FMA define could not become part of them without.
template <typename Body>
[[gnu::target("avx512f,fma"), gnu::flatten]] void InWideVectors(const Body& body) {
  body();
}
template <typename Body>
[[gnu::target("avx2,fma"), gnu::flatten]] void InVectors(const Body& body) {
  body();
}
#endif

// Calls body(), which the compiler has made for each kind of processor; the code is as many times
// as large, so it should be a loop and little else. Multiplications and additions are never fused
// (-ffp-contract=off), so an element that is made of those at its place has the same bits in each.
// The file must be compiled with -O3.
template <typename Body>
void WithWidestVectors(const Body& body) {
#if defined(__x86_64__)
  if (MayUse(Vectors::kAvx512)) return InWideVectors(body);
  if (MayUse(Vectors::kAvx2)) return InVectors(body);
#endif
  body();
}

}  // namespace ringmaster::device

#endif  // RINGMASTER_RUNTIME_DEVICE_WIDE_H_
