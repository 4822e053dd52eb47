#include <array>
#include <cstdint>

#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"

namespace ringmaster::kernels::reference {
namespace {

// Moves elements of `Element`'s size, whatever they are.
template <typename Element>
class TransposeKernel : public ReferencePrimitive {
 public:
  explicit TransposeKernel(const NodeSpec& node) : shape_(OutShape(node, 0)) {
    const Shape& x = InShape(node, 0);
    const auto axes = node.attributes.Ints("axes");
    for (size_t i = 0; i < axes.size(); ++i)
      strides_[i] = x.Product(static_cast<int>(axes[i]) + 1, x.rank());
    if (shape_.rank() == 0) return;
    row_ = shape_.dim(-1);
    step_ = strides_[axes.size() - 1];
  }

  void Run(const Arguments& a) override {
    ParallelFor(shape_.elements() / row_, row_ * 2, [&](int64_t r) {
      const Element* from = a.in<Element>(0) + RowOffset(shape_, strides_, r);
      Element* to = a.out<Element>(0) + r * row_;
      for (int64_t i = 0; i < row_; ++i) to[i] = from[i * step_];
    });
  }

 private:
  Shape shape_;
  std::array<int64_t, Shape::kMaxRank> strides_{};  // in x, by axis of the result
  int64_t row_ = 1, step_ = 1;
};

}  // namespace

std::unique_ptr<Primitive> Transpose(const NodeSpec& node) {
  switch (SizeOf(node.outputs[0].dtype)) {
    case sizeof(uint8_t):
      return std::make_unique<TransposeKernel<uint8_t>>(node);
    case sizeof(uint16_t):
      return std::make_unique<TransposeKernel<uint16_t>>(node);
    case sizeof(uint32_t):
      return std::make_unique<TransposeKernel<uint32_t>>(node);
    case sizeof(uint64_t):
      return std::make_unique<TransposeKernel<uint64_t>>(node);
    default:
      return nullptr;
  }
}

}  // namespace ringmaster::kernels::reference
