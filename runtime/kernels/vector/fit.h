// Which nodes and processors the kernels of this folder are for. Internal to it.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_FIT_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_FIT_H_

#include <string>

#include "runtime/kernels/kernel.h"

namespace ringmaster::kernels::vector {

class VectorPrimitive : public Primitive {
 public:
  std::string name() const override { return "vector/avx2"; }
};

// Whether the processor has AVX2 and FMA, and all inputs and outputs are f32 and row-major.
bool Fits(const NodeSpec& node);
// The same for an op whose second input is labels or indices.
bool FitsWithIndices(const NodeSpec& node);

// The same for an op that has, or makes, a byte for each pixel that was pooled.
bool FitsWithTaps(const NodeSpec& node);

// The same in any layout, for an op whose sums over shards, [2 C + 1], are f64.
bool FitsWithSums(const NodeSpec& node);

// The same in any layout: for kernels that look at it.
bool FitsInAnyLayout(const NodeSpec& node);

// The same, where all inputs and outputs have one shape and lie alike: for kernels that do to one
// place what they do to all.
bool FitsAlike(const NodeSpec& node);

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_FIT_H_
