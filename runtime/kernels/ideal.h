// What the arithmetic of a network takes in oneDNN: its convolutions and matrix products alone. A
// yardstick; kernels of ours that do with fewer multiplications, or use a matrix unit, are faster.
#ifndef RINGMASTER_RUNTIME_KERNELS_IDEAL_H_
#define RINGMASTER_RUNTIME_KERNELS_IDEAL_H_

#include <memory>

#include "runtime/kernels/kernel.h"

namespace ringmaster::kernels {

// oneDNN's own primitive for a convolution, a matrix product or a gradient of one, on operands that
// are taken to lie in the layouts that it likes best already: no copy is made between layouts. To
// be timed; what it computes means nothing. Takes memory as the node does. Null for other ops, and
// where oneDNN does not take the node.
std::unique_ptr<Primitive> PrepareIdeal(const NodeSpec& node);

}  // namespace ringmaster::kernels

#endif  // RINGMASTER_RUNTIME_KERNELS_IDEAL_H_
