// How elements are combined: every reduction of every type but the ordered sum's, which has add.h.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_COMBINE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_COMBINE_H_

#include <cstddef>
#include <span>

#include "runtime/collectives/element.h"

namespace ringmaster::collectives {

// Integers wrap around. A NaN makes the result NaN, the quiet one without payload, in every
// reduction.
enum class Reduction : uint8_t { kSum, kAverage, kMin, kMax, kProduct };
inline constexpr size_t kReductions = 5;

// "sum", "average", "min", "max", "product".
const char* NameOf(Reduction reduction);

// out[i] = left[i] (reduction) right[i]; kAverage adds. 16-bit floats are rounded once. `out` may
// be `left` or `right`; other overlaps are not allowed.
struct Combiner {
  Reduction reduction = Reduction::kSum;
  ElementType type = ElementType::kF32;

  void operator()(std::byte* out, const std::byte* left, const std::byte* right,
                  size_t count) const;

  // out[i] = outer[i] (reduction) (left[i] (reduction) right[i]), as by two calls, but what is in
  // brackets stays in the nearest cache. `out` may be any of the three.
  void operator()(std::byte* out, const std::byte* outer, const std::byte* left,
                  const std::byte* right, size_t count) const;
};

// What an average of this type is summed in, so that it neither overflows nor loses digits before
// it is rounded once: int64 for the integers, float for the 16-bit floats, else the type itself.
ElementType WideTypeOf(ElementType type);

// What the values of an average over `count` of them are multiplied by before they are summed, so
// that the sum overflows nowhere: a power of two, at most 1 / count, where the sum's type has no
// greater range than theirs (bf16, f32, f64), else 1. Exact, but for values so small that they
// become subnormal: below 2^-1022 of an f64, 2^-126 of the others, each times `count`, some of the
// last digits are lost.
double AverageScale(ElementType type, int count);

// wide = values * scale, in WideTypeOf; a scale is for floats. The same count. May be the same
// memory where the types are the same.
void Widen(ConstElements values, Elements wide, double scale = 1);

// values = wide / divisor / scale; of integers the part before the point. May be the same memory
// where the types are the same.
void DivideAndNarrow(ConstElements wide, int divisor, Elements values, double scale = 1);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_COMBINE_H_
