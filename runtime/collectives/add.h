// Element by element: the one addition that every sum of this module is made of.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ADD_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ADD_H_

#include <cstddef>

#include "runtime/collectives/compression/sixteen_bits.h"
#include "runtime/collectives/element.h"

namespace ringmaster::collectives {

// out[i] = left[i] + right[i], rounded once, with every NaN replaced by the positive quiet NaN
// without payload (0x7fc00000 in single precision). Where two NaNs meet, hardware keeps the payload
// of one operand, and the compiler is free to swap operands, so payloads would depend on how the
// array was cut. `out` may be `left` or `right`; other overlaps are not allowed.
void Add(float* out, const float* left, const float* right, size_t count);
void Add(double* out, const double* left, const double* right, size_t count);

// The same of 16-bit numbers: added as floats, rounded once more to what they are stored as. Of
// blocks, `count` is how many.
void Add(BFloat16* out, const BFloat16* left, const BFloat16* right, size_t count);
void Add(HalfBlock* out, const HalfBlock* left, const HalfBlock* right, size_t count);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ADD_H_
