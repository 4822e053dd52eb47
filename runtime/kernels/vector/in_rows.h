// Kernels for images in rows, for nodes whose images lie in blocks. Internal to this folder.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_IN_ROWS_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_IN_ROWS_H_

#include <memory>

#include "runtime/kernels/kernel.h"

namespace ringmaster::kernels::vector {

// A kernel for the node, which has at most three inputs and one output: `kernel`, which wants all
// of them in rows and becomes the result's own, between reorders of what lies otherwise. Never
// null.
std::unique_ptr<Primitive> InRows(const NodeSpec& node, std::unique_ptr<Primitive> kernel);

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_IN_ROWS_H_
