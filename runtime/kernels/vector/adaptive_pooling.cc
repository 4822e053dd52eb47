// Adaptive mean pooling by windows of several sizes. (Where all have one size, as one mean of each
// plane has, the graph takes mean pooling.) Windows are narrow, so eight planes are taken at once.
#include <algorithm>
#include <vector>

#include "runtime/device/parallel.h"
#include "runtime/kernels/transpose.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/vector.h"
#include "runtime/kernels/window.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// What both kernels share: eight planes side by side, a lane each, whose elements
// are added in the reference kernel's order, to its bits.
class WindowsKernel : public VectorPrimitive {
 public:
  size_t scratch_bytes() const override {
    const int64_t busy = std::min<int64_t>(PartsOf(planes_, kLane), device::ThreadCount());
    return static_cast<size_t>(busy) * floats() * sizeof(float);
  }

 protected:
  WindowsKernel(const tensor::Shape& image, const tensor::Shape& means)
      : planes_(image.Product(0, 2)),
        width_(image.dim(3)),
        plane_(image.Product(2, 4)),
        means_(means.Product(2, 4)),
        rows_(PlacesOf(image.dim(2), means.dim(2))),
        columns_(PlacesOf(image.dim(3), means.dim(3))) {}

  // Calls body(first plane, number of planes, the image's lanes, the means' lanes) for eight planes
  // at a time, or what is left of them.
  template <typename Body>
  void ForEightPlanes(const Arguments& a, const Body& body) const {
    ForParts(PartsOf(planes_, kLane), (plane_ + means_) * kLane, floats(),
             static_cast<float*>(a.scratch), [&](int64_t eight, float* scratch) {
               const int64_t first = eight * kLane;
               body(first, std::min(kLane, planes_ - first), scratch, scratch + plane_ * kLane);
             });
  }

  // Calls body(rows, columns) for each mean.
  template <typename Body>
  void ForWindows(const Body& body) const {
    for (const Range& rows : rows_) {
      for (const Range& columns : columns_) body(rows, columns);
    }
  }

  // Calls body(the place's lanes) for each place of a window.
  template <typename Body>
  void ForPlaces(const Range& rows, const Range& columns, float* image, const Body& body) const {
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) body(image + (i * width_ + j) * kLane);
    }
  }

  static int64_t Elements(const Range& rows, const Range& columns) {
    return (rows.end - rows.begin) * (columns.end - columns.begin);
  }

  const int64_t planes_, width_, plane_, means_;  // planes, and elements of a row and a plane

 private:
  size_t floats() const { return static_cast<size_t>((plane_ + means_) * kLane); }  // of a thread

  static std::vector<Range> PlacesOf(int64_t in, int64_t out) {
    std::vector<Range> places;
    for (int64_t o = 0; o < out; ++o) places.push_back(AdaptivePlaces(o, in, out));
    return places;
  }

  const std::vector<Range> rows_, columns_;  // of each row and column of means
};

// Of `count` rows of n floats, which follow one another, each element's eight lanes; those behind
// the last row are the last row's.
void ToLanes(const float* rows, int64_t count, int64_t n, float* lanes_of) {
  ForLanes(n, [&](auto lanes, int64_t at) {
    EightRows block;
    for (int64_t i = 0; i < kLane; ++i)
      block[i] = lanes.Load(rows + std::min(i, count - 1) * n + at);
    Transpose(block);
    for (int64_t i = 0; i < std::min(kLane, n - at); ++i)
      _mm256_storeu_ps(lanes_of + (at + i) * kLane, block[i]);
  });
}

// And back.
void FromLanes(const float* lanes_of, int64_t count, int64_t n, float* rows) {
  ForLanes(n, [&](auto lanes, int64_t at) {
    EightRows block;
    for (int64_t i = 0; i < kLane; ++i)
      block[i] = _mm256_loadu_ps(lanes_of + std::min(at + i, n - 1) * kLane);
    Transpose(block);
    for (int64_t i = 0; i < count; ++i) lanes.Store(rows + i * n + at, block[i]);
  });
}

class AdaptiveAvgPoolKernel : public WindowsKernel {
 public:
  explicit AdaptiveAvgPoolKernel(const NodeSpec& node)
      : WindowsKernel(node.inputs[0].shape, node.outputs[0].shape) {}

  void Run(const Arguments& a) override {
    ForEightPlanes(a, [&](int64_t first, int64_t count, float* image, float* means) {
      ToLanes(a.in<float>(0) + first * plane_, count, plane_, image);
      float* mean = means;
      ForWindows([&](const Range& rows, const Range& columns) {
        __m256d low = _mm256_setzero_pd(), high = _mm256_setzero_pd();
        ForPlaces(rows, columns, image, [&](const float* place) {
          const __m256 x = _mm256_loadu_ps(place);
          low = _mm256_add_pd(low, LowDoubles(x));
          high = _mm256_add_pd(high, HighDoubles(x));
        });
        const __m256d elements = _mm256_set1_pd(static_cast<double>(Elements(rows, columns)));
        _mm_storeu_ps(mean, _mm256_cvtpd_ps(_mm256_div_pd(low, elements)));
        _mm_storeu_ps(mean + kLane / 2, _mm256_cvtpd_ps(_mm256_div_pd(high, elements)));
        mean += kLane;
      });
      FromLanes(means, count, means_, a.out<float>(0) + first * means_);
    });
  }
};

class AdaptiveAvgPoolGradKernel : public WindowsKernel {
 public:
  explicit AdaptiveAvgPoolGradKernel(const NodeSpec& node)
      : WindowsKernel(node.outputs[0].shape, node.inputs[0].shape) {}

  void Run(const Arguments& a) override {
    ForEightPlanes(a, [&](int64_t first, int64_t count, float* image, float* means) {
      ToLanes(a.in<float>(0) + first * means_, count, means_, means);
      std::fill_n(image, plane_ * kLane, 0.0F);
      const float* mean = means;
      ForWindows([&](const Range& rows, const Range& columns) {
        const __m256 elements = _mm256_set1_ps(static_cast<float>(Elements(rows, columns)));
        const __m256 part = _mm256_div_ps(_mm256_loadu_ps(mean), elements);
        ForPlaces(rows, columns, image, [&](float* place) {
          _mm256_storeu_ps(place, _mm256_add_ps(_mm256_loadu_ps(place), part));
        });
        mean += kLane;
      });
      FromLanes(image, count, plane_, a.out<float>(0) + first * plane_);
    });
  }
};

}  // namespace

std::unique_ptr<Primitive> AdaptiveAvgPool2d(const NodeSpec& node) {
  if (!Fits(node)) return nullptr;
  return std::make_unique<AdaptiveAvgPoolKernel>(node);
}

std::unique_ptr<Primitive> AdaptiveAvgPool2dGrad(const NodeSpec& node) {
  if (!Fits(node)) return nullptr;
  return std::make_unique<AdaptiveAvgPoolGradKernel>(node);
}

}  // namespace ringmaster::kernels::vector
