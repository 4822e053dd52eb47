// Activations that need an exponential, within kernels for processors with AVX2 and FMA; sixteen
// floats at a time where products use the widest tiles (product.h), else eight. Both make the same
// bits. Internal to this folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_ACTIVATIONS_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_ACTIVATIONS_H_

#include <cstdint>

#include "runtime/kernels/activation.h"

namespace ringmaster::kernels::vector {

// Some columns of a matrix, or neighbouring floats.
struct Matrix {
  int64_t rows = 1;
  int64_t columns = 0;
  int64_t stride = 0;  // from one row to the next
};

// y = the activation of x, which lie alike and may be one. kNone and kRelu, which kernels make
// themselves, do nothing. On the calling thread.
void Activate(Activation activation, const Matrix& matrix, const float* x, float* y);

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_ACTIVATIONS_H_
