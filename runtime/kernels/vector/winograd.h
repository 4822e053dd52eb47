// Convolutions of small images with fewer multiplications (of large ones: winograd_blocks.h).
// Internal to this folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_H_

#include <memory>

#include "runtime/kernels/kernel.h"

namespace ringmaster::kernels::vector {

// For nodes that the kernels of convolution.cc take. Null unless windows are 3 x 3 or 5 x 5, of
// several channels, all that a few images need stays in the second cache, and their places fill the
// vectors. What comes out is about as exact as a sum of products with windows of 3 x 3, and off by
// up to 6e-6 of the largest with 5 x 5; an element that is no number makes such of others near it,
// too.
std::unique_ptr<Primitive> WinogradConv2d(const NodeSpec& node);
std::unique_ptr<Primitive> WinogradConv2dGradInput(const NodeSpec& node);
std::unique_ptr<Primitive> WinogradConv2dGradWeight(const NodeSpec& node);

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_WINOGRAD_H_
