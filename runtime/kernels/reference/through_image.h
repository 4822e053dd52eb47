// Two ops as one: the reference kernels of both, one after another. Internal to kernels/reference/.
#ifndef RINGMASTER_RUNTIME_KERNELS_REFERENCE_THROUGH_IMAGE_H_
#define RINGMASTER_RUNTIME_KERNELS_REFERENCE_THROUGH_IMAGE_H_

#include <memory>

#include "runtime/kernels/reference/common.h"

namespace ringmaster::kernels::reference {

// Two primitives, and the image that the first one makes for the second in the scratch memory;
// neither wants any of its own.
class ThroughImage : public ReferencePrimitive {
 public:
  size_t scratch_bytes() const override { return image_.bytes(); }

 protected:
  explicit ThroughImage(const ValueSpec& image) : image_(image) {}

  const ValueSpec image_;
  std::unique_ptr<Primitive> first_, second_;
};

inline bool IsReal(const NodeSpec& node) {
  return node.outputs[0].dtype == DType::kF32 || node.outputs[0].dtype == DType::kF64;
}

}  // namespace ringmaster::kernels::reference

#endif  // RINGMASTER_RUNTIME_KERNELS_REFERENCE_THROUGH_IMAGE_H_
