// The loop behind every combination of two arrays, in the widest vectors that the processor has.
//
// What includes this is compiled with -O3 (CMakeLists.txt): the loop is written for one element,
// and GCC makes vectors of it, once for every x86-64 processor and once for those with AVX2. Both
// round as the scalar loop does, so which one runs changes no bit.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ELEMENTWISE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ELEMENTWISE_H_

#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ringmaster::collectives {

// out = a (reduction) b for Elementwise. kSelects: a NaN on the left would be lost.
struct Sum {
  static constexpr bool kSelects = false;
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a + b);
  }
};
struct Product {
  static constexpr bool kSelects = false;
  template <typename T>
  static T Of(T a, T b) {
    return static_cast<T>(a * b);
  }
};
struct Min {
  static constexpr bool kSelects = true;
  template <typename T>
  static T Of(T a, T b) {
    return a < b ? a : b;
  }
};
struct Max {
  static constexpr bool kSelects = true;
  template <typename T>
  static T Of(T a, T b) {
    return a > b ? a : b;
  }
};

namespace internal {

// No iteration depends on another: `out` is one of the operands, or apart from both.
template <typename T, typename Op>
[[gnu::always_inline]] inline void ElementwiseLoop(std::byte* out, const std::byte* left,
                                                   const std::byte* right, size_t count) {
#pragma GCC ivdep
  for (size_t at = 0; at < count; ++at) {
    T a;
    T b;
    std::memcpy(&a, left + at * sizeof(T), sizeof(T));
    std::memcpy(&b, right + at * sizeof(T), sizeof(T));
    T result = Op::Of(a, b);
    if constexpr (std::is_floating_point_v<T>) {
      const T nan = std::numeric_limits<T>::quiet_NaN();
      result = result == result ? result : nan;
      if constexpr (Op::kSelects) result = a == a ? result : nan;
    }
    std::memcpy(out + at * sizeof(T), &result, sizeof(T));
  }
}

// The same, which fetches both operands ahead: what another rank wrote comes from that one's cache,
// and what is large from memory, and the processor's own prefetching begins anew in each page.
// Nothing beyond the operands, which may be what the other rank is writing.
template <typename T, typename Op>
[[gnu::always_inline]] inline void ElementwiseAhead(std::byte* out, const std::byte* left,
                                                    const std::byte* right, size_t count) {
  constexpr size_t kLine = 64, kBlock = 16 * kLine, kAhead = 2 * kBlock;
  size_t at = 0;
  for (const size_t bytes = count * sizeof(T); at + kAhead + kBlock <= bytes; at += kBlock) {
    for (size_t line = at + kAhead; line < at + kAhead + kBlock; line += kLine) {
      __builtin_prefetch(left + line);
      __builtin_prefetch(right + line);
    }
    ElementwiseLoop<T, Op>(out + at, left + at, right + at, kBlock / sizeof(T));
  }
  ElementwiseLoop<T, Op>(out + at, left + at, right + at, count - at / sizeof(T));
}

template <typename T, typename Op>
[[gnu::noinline]] void ElementwisePlain(std::byte* out, const std::byte* left,
                                        const std::byte* right, size_t count) {
  ElementwiseAhead<T, Op>(out, left, right, count);
}

#if defined(__x86_64__)
template <typename T, typename Op>
[[gnu::noinline, gnu::target("avx2")]] void ElementwiseAvx2(std::byte* out, const std::byte* left,
                                                            const std::byte* right, size_t count) {
  ElementwiseAhead<T, Op>(out, left, right, count);
}
#endif

}  // namespace internal

// out[i] = left[i] (Op) right[i] for `count` numbers of type T, whatever their alignment. Every NaN
// that comes out is the positive quiet one without payload: where two meet, hardware keeps the
// payload of one operand, and the compiler is free to swap operands. `out` may be `left` or
// `right`; other overlaps are not allowed.
template <typename T, typename Op>
void Elementwise(std::byte* out, const std::byte* left, const std::byte* right, size_t count) {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  if (avx2) return internal::ElementwiseAvx2<T, Op>(out, left, right, count);
#endif
  internal::ElementwisePlain<T, Op>(out, left, right, count);
}

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ELEMENTWISE_H_
