#include <algorithm>
#include <limits>

#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"

namespace ringmaster::kernels::reference {
namespace {

// (table, indices) -> rows.
template <typename T>
class EmbeddingKernel : public ReferencePrimitive {
 public:
  explicit EmbeddingKernel(const NodeSpec& node)
      : rows_(InShape(node, 0).dim(0)),
        width_(InShape(node, 0).dim(1)),
        count_(InShape(node, 1).elements()) {}

  void Run(const Arguments& a) override {
    const T* table = a.in<T>(0);
    const int32_t* indices = a.in<int32_t>(1);
    T* y = a.out<T>(0);
    ParallelFor(count_, width_, [&](int64_t i) {
      const int32_t row = indices[i];
      if (row < 0 || row >= rows_) {
        std::fill_n(y + i * width_, width_, std::numeric_limits<T>::quiet_NaN());
      } else {
        std::copy_n(table + row * width_, width_, y + i * width_);
      }
    });
  }

 private:
  int64_t rows_, width_, count_;
};

// (dy, indices) -> dtable. One thread adds the rows in the order of the indices: two of them may be
// equal.
template <typename T>
class EmbeddingGradKernel : public ReferencePrimitive {
 public:
  explicit EmbeddingGradKernel(const NodeSpec& node)
      : rows_(OutShape(node, 0).dim(0)),
        width_(OutShape(node, 0).dim(1)),
        count_(InShape(node, 1).elements()) {}

  void Run(const Arguments& a) override {
    const T* dy = a.in<T>(0);
    const int32_t* indices = a.in<int32_t>(1);
    T* dtable = a.out<T>(0);
    std::fill_n(dtable, rows_ * width_, T(0));
    for (int64_t i = 0; i < count_; ++i) {
      const int32_t row = indices[i];
      if (row < 0 || row >= rows_) continue;
      for (int64_t j = 0; j < width_; ++j) dtable[row * width_ + j] += dy[i * width_ + j];
    }
  }

 private:
  int64_t rows_, width_, count_;
};

}  // namespace

std::unique_ptr<Primitive> Embedding(const NodeSpec& node) {
  return MakeReal<EmbeddingKernel>(node);
}
std::unique_ptr<Primitive> EmbeddingGrad(const NodeSpec& node) {
  return MakeReal<EmbeddingGradKernel>(node);
}

}  // namespace ringmaster::kernels::reference
