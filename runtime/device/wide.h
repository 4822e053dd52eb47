// Loops in the widest vectors that the processor has, from one source.
#ifndef RINGMASTER_RUNTIME_DEVICE_WIDE_H_
#define RINGMASTER_RUNTIME_DEVICE_WIDE_H_

namespace ringmaster::device {

#if defined(__x86_64__)
// All that the body calls becomes part of these, so that it is compiled for that processor.
template <typename Body>
[[gnu::target("avx512f"), gnu::flatten]] void InWideVectors(const Body& body) {
  body();
}
template <typename Body>
[[gnu::target("avx2"), gnu::flatten]] void InVectors(const Body& body) {
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
  if (__builtin_cpu_supports("avx512f")) return InWideVectors(body);
  if (__builtin_cpu_supports("avx2")) return InVectors(body);
#endif
  body();
}

}  // namespace ringmaster::device

#endif  // RINGMASTER_RUNTIME_DEVICE_WIDE_H_
