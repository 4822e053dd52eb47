// The gradient of a table of embeddings: each thread has rows of the table of its own, clears them
// and adds what belongs to them, in the order of the indices.
#include <algorithm>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/vector.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// (dy, indices) -> dtable
class EmbeddingGradKernel : public VectorPrimitive {
 public:
  explicit EmbeddingGradKernel(const NodeSpec& node)
      : rows_(node.outputs[0].shape.dim(0)),
        width_(node.outputs[0].shape.dim(1)),
        count_(node.inputs[1].shape.elements()) {}

  void Run(const Arguments& a) override {
    // Each part looks at all indices, so there are few.
    const int64_t parts = std::min<int64_t>(rows_, 4 * device::ThreadCount());
    device::ParallelFor(parts, (rows_ + count_) * width_ / parts, [&](int64_t part) {
      RunRows(a, rows_ * part / parts, rows_ * (part + 1) / parts);
    });
  }

 private:
  void RunRows(const Arguments& a, int64_t begin, int64_t end) const {
    const int32_t* indices = a.in<int32_t>(1);
    float* dtable = a.out<float>(0);
    std::fill(dtable + begin * width_, dtable + end * width_, 0.0F);
    for (int64_t i = 0; i < count_; ++i) {
      if (indices[i] < begin || indices[i] >= end) continue;
      const float* __restrict from = a.in<float>(0) + i * width_;
      float* __restrict to = dtable + indices[i] * width_;
      const int64_t width = width_;
      for (int64_t j = 0; j < width; ++j) to[j] += from[j];
    }
  }

  const int64_t rows_, width_, count_;
};

}  // namespace

std::unique_ptr<Primitive> EmbeddingGrad(const NodeSpec& node) {
  return FitsWithIndices(node) ? std::make_unique<EmbeddingGradKernel>(node) : nullptr;
}

}  // namespace ringmaster::kernels::vector
