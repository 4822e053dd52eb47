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

// "sum", "average", "min", "max", "product".
const char* NameOf(Reduction reduction);

// out[i] = left[i] (reduction) right[i]; kAverage adds. 16-bit floats are rounded once. `out` may
// be `left` or `right`; other overlaps are not allowed.
struct Combiner {
  Reduction reduction = Reduction::kSum;
  ElementType type = ElementType::kF32;

  void operator()(std::byte* out, const std::byte* left, const std::byte* right,
                  size_t count) const;
};

// What an average of this type is summed in, so that it neither overflows nor loses digits before
// it is rounded once: int64 for the integers, float for the 16-bit floats, else the type itself.
ElementType WideTypeOf(ElementType type);

// wide = values, in WideTypeOf. The same count.
void Widen(ConstElements values, Elements wide);

// values = wide / divisor; of integers the part before the point. May be the same memory where the
// types are the same.
void DivideAndNarrow(ConstElements wide, int divisor, Elements values);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_COMBINE_H_
