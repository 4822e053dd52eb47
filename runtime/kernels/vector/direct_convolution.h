// Convolutions of few channels straight from the image, for processors with AVX-512: sixteen places
// of the result, of one row or of the ends of two, are a register, and what a tap sees of them is
// loaded from where it lies. Internal to this folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_DIRECT_CONVOLUTION_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_DIRECT_CONVOLUTION_H_

#include <memory>

#include "runtime/kernels/kernel.h"

namespace ringmaster::kernels::vector {

// For nodes that the kernels of convolution.cc take. Null unless windows move by one pixel, there
// are several samples, and no register has places of three rows. The forward pass has the bits of
// convolution.cc's; the gradient's sums begin in sixteen lanes.
std::unique_ptr<Primitive> DirectConv2d(const NodeSpec& node);
std::unique_ptr<Primitive> DirectConv2dGradWeight(const NodeSpec& node);

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_DIRECT_CONVOLUTION_H_
