// Convolutions with windows of one pixel over images whose channels lie in blocks of 16
// (tensor::Layout), as products on the processor's matrix unit (split_product.h). Internal to this
// folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_SPLIT_CONVOLUTION_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_SPLIT_CONVOLUTION_H_

#include <memory>

#include "runtime/kernels/kernel.h"

namespace ringmaster::kernels::vector {

// Null where there is no such unit, where images lie otherwise, windows are others or move by more
// than one pixel, where channels are too few to pay, and where an addend lies otherwise than the
// result.
std::unique_ptr<Primitive> SplitConv2d(const NodeSpec& node);
std::unique_ptr<Primitive> SplitConv2dBatchNorm(const NodeSpec& node);
std::unique_ptr<Primitive> SplitConv2dGradInput(const NodeSpec& node);
std::unique_ptr<Primitive> SplitConv2dGradWeight(const NodeSpec& node);

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_SPLIT_CONVOLUTION_H_
