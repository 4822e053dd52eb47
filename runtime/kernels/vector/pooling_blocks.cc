// The gradient of max pooling, for images in blocks and any window: lanes are channels, each of
// which has its own largest element.
#include <algorithm>
#include <immintrin.h>

#include "runtime/kernels/vector/blocks.h"
#include "runtime/kernels/vector/lanes.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// (x, dy) -> dx: the first of the largest, in row order, gets it all.
class MaxPoolGradBlocksKernel : public VectorPrimitive {
 public:
  explicit MaxPoolGradBlocksKernel(const NodeSpec& node)
      : image_(node.inputs[0]),
        result_(node.inputs[1]),
        height_(node.inputs[0].shape.dim(2)),
        width_(node.inputs[0].shape.dim(3)),
        rows_(node.inputs[1].shape.dim(2)),
        columns_(node.inputs[1].shape.dim(3)),
        vertical_(node.attributes, 0),
        horizontal_(node.attributes, 1) {}

  void Run(const Arguments& a) override {
    const int64_t groups = image_.groups();
    device::ParallelFor(image_.batch() * groups, image_.plane() * kLane, [&](int64_t task) {
      const int64_t n = task / groups, group = task % groups;
      const int64_t at = image_.Begin(n, group);
      Plane(a.in<float>(0) + at, a.in<float>(1) + result_.Begin(n, group), a.out<float>(0) + at);
    });
  }

 private:
  struct Axis {
    int64_t window, stride, padding;

    Axis(const Attributes& attributes, size_t axis)
        : window(attributes.Ints("window")[axis]),
          stride(attributes.Ints("stride")[axis]),
          padding(attributes.Ints("padding")[axis]) {}
    int64_t Begin(int64_t place) const { return std::max<int64_t>(0, place * stride - padding); }
    int64_t End(int64_t place, int64_t extent) const {
      return std::min(extent, place * stride - padding + window);
    }
  };

  void Plane(const float* x, const float* dy, float* dx) const {
    const int64_t step = image_.step();
    for (int64_t i = 0; i < image_.plane(); ++i)
      _mm256_storeu_ps(dx + i * step, _mm256_setzero_ps());
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t column = 0; column < columns_; ++column) {
        Window(row, column, x, _mm256_loadu_ps(dy + (row * columns_ + column) * step), dx);
      }
    }
  }

  void Window(int64_t row, int64_t column, const float* x, __m256 dy, float* dx) const {
    const int64_t top = vertical_.Begin(row), bottom = vertical_.End(row, height_);
    const int64_t left = horizontal_.Begin(column), right = horizontal_.End(column, width_);
    const int64_t step = image_.step();
    __m256 largest = _mm256_loadu_ps(x + (top * width_ + left) * step);
    __m256i winner = _mm256_set1_epi32(static_cast<int>(top * width_ + left));
    for (int64_t i = top; i < bottom; ++i) {
      for (int64_t j = left; j < right; ++j) {
        const __m256 value = _mm256_loadu_ps(x + (i * width_ + j) * step);
        // Larger, or no number where the largest so far is one.
        const __m256 takes = _mm256_and_ps(_mm256_cmp_ps(value, largest, _CMP_NLE_UQ),
                                           _mm256_cmp_ps(largest, largest, _CMP_ORD_Q));
        largest = _mm256_blendv_ps(largest, value, takes);
        winner = _mm256_blendv_epi8(winner, _mm256_set1_epi32(static_cast<int>(i * width_ + j)),
                                    _mm256_castps_si256(takes));
      }
    }
    for (int64_t i = top; i < bottom; ++i) {
      for (int64_t j = left; j < right; ++j) {
        float* to = dx + (i * width_ + j) * step;
        const __m256i here = _mm256_set1_epi32(static_cast<int>(i * width_ + j));
        const __m256 share =
            _mm256_and_ps(dy, _mm256_castsi256_ps(_mm256_cmpeq_epi32(winner, here)));
        _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), share));
      }
    }
  }

  const LaneWalk image_, result_;
  const int64_t height_, width_, rows_, columns_;
  const Axis vertical_, horizontal_;
};

}  // namespace

std::unique_ptr<Primitive> MaxPool2dGradOfBlocks(const NodeSpec& node) {
  if (!LiesInBlocks(node)) return nullptr;
  return std::make_unique<MaxPoolGradBlocksKernel>(node);
}

}  // namespace ringmaster::kernels::vector
