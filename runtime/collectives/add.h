// Element by element: the one addition that every sum of this module is made of.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ADD_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ADD_H_

#include <cstddef>

namespace ringmaster::collectives {

// out[i] = left[i] + right[i], rounded once, with every NaN replaced by the positive quiet NaN
// without payload (0x7fc00000 in single precision). Where two NaNs meet, hardware keeps the payload
// of one operand, and the compiler is free to swap operands, so payloads would depend on how the
// array was cut. `out` may be `left` or `right`; other overlaps are not allowed.
void Add(float* out, const float* left, const float* right, size_t count);
void Add(double* out, const double* left, const double* right, size_t count);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ADD_H_
