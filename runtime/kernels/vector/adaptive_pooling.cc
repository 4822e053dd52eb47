// Adaptive mean pooling by windows of several sizes. (Where all have one size, as one mean of each
// plane has, the graph takes mean pooling.) Windows are narrow, so eight planes are taken at once:
// in blocks of channels they lie side by side, and rows are turned before and behind.
#include <algorithm>
#include <vector>

#include "runtime/device/parallel.h"
#include "runtime/kernels/transpose.h"
#include "runtime/kernels/vector/blocks.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/vector.h"
#include "runtime/kernels/window.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// Eight planes, a lane each: an element's lanes are `step` floats behind those of the one before.
template <typename Float>
struct Planes {
  Float* first;
  int64_t step;
  Float* at(int64_t element) const { return first + element * step; }
};

// What both kernels share: windows, whose elements are added in the reference kernel's order, to
// its bits.
class WindowsKernel : public VectorPrimitive {
 public:
  size_t scratch_bytes() const override {
    const int64_t busy = std::min<int64_t>(PartsOf(planes_, kLane), device::ThreadCount());
    return in_blocks() ? 0 : static_cast<size_t>(busy) * floats() * sizeof(float);
  }

 protected:
  WindowsKernel(const tensor::ValueSpec& image, const tensor::ValueSpec& means)
      : planes_(image.shape.Product(0, 2)),
        width_(image.shape.dim(3)),
        plane_(image.shape.Product(2, 4)),
        means_(means.shape.Product(2, 4)),
        image_walk_(image),
        means_walk_(means),
        rows_(PlacesOf(image.shape.dim(2), means.shape.dim(2))),
        columns_(PlacesOf(image.shape.dim(3), means.shape.dim(3))) {}

  bool in_blocks() const { return step() > 0; }
  int64_t step() const { return image_walk_.step(); }  // between elements of a plane in blocks

  // Calls body(where eight channels begin in the image, and in the means) for all, in blocks.
  template <typename Body>
  void ForBlocks(const Body& body) const {
    const int64_t groups = image_walk_.groups();
    device::ParallelFor(planes_ / kLane, (plane_ + means_) * kLane, [&](int64_t task) {
      const int64_t sample = task / groups, group = task % groups;
      body(image_walk_.Begin(sample, group), means_walk_.Begin(sample, group));
    });
  }

  // Calls body(first plane, number of planes, the image's lanes, the means' lanes) for eight planes
  // in rows at a time, or what is left of them.
  template <typename Body>
  void ForEightPlanes(const Arguments& a, const Body& body) const {
    ForParts(PartsOf(planes_, kLane), (plane_ + means_) * kLane, floats(),
             static_cast<float*>(a.scratch), [&](int64_t eight, float* scratch) {
               const int64_t first = eight * kLane;
               body(first, std::min(kLane, planes_ - first), scratch, scratch + plane_ * kLane);
             });
  }

  // Calls body(mean, rows, columns) for each mean.
  template <typename Body>
  void ForWindows(const Body& body) const {
    int64_t mean = 0;
    for (const Range& rows : rows_) {
      for (const Range& columns : columns_) body(mean++, rows, columns);
    }
  }

  // Calls body(the place's lanes) for each place of a window.
  template <typename Float, typename Body>
  void ForPlaces(const Range& rows, const Range& columns, const Planes<Float>& image,
                 const Body& body) const {
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) body(image.at(i * width_ + j));
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

  const LaneWalk image_walk_, means_walk_;
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
      : WindowsKernel(node.inputs[0], node.outputs[0]) {}

  void Run(const Arguments& a) override {
    const float* x = a.in<float>(0);
    float* y = a.out<float>(0);
    if (in_blocks()) {
      ForBlocks([&](int64_t image, int64_t means) {
        Pool({x + image, step()}, {y + means, step()});
      });
      return;
    }
    ForEightPlanes(a, [&](int64_t first, int64_t count, float* image, float* means) {
      ToLanes(x + first * plane_, count, plane_, image);
      Pool({image, kLane}, {means, kLane});
      FromLanes(means, count, means_, y + first * means_);
    });
  }

 private:
  void Pool(const Planes<const float>& image, const Planes<float>& means) const {
    ForWindows([&](int64_t mean, const Range& rows, const Range& columns) {
      __m256d low = _mm256_setzero_pd(), high = _mm256_setzero_pd();
      ForPlaces(rows, columns, image, [&](const float* place) {
        const __m256 x = _mm256_loadu_ps(place);
        low = _mm256_add_pd(low, LowDoubles(x));
        high = _mm256_add_pd(high, HighDoubles(x));
      });
      const __m256d elements = _mm256_set1_pd(static_cast<double>(Elements(rows, columns)));
      float* to = means.at(mean);
      _mm_storeu_ps(to, _mm256_cvtpd_ps(_mm256_div_pd(low, elements)));
      _mm_storeu_ps(to + kLane / 2, _mm256_cvtpd_ps(_mm256_div_pd(high, elements)));
    });
  }
};

class AdaptiveAvgPoolGradKernel : public WindowsKernel {
 public:
  explicit AdaptiveAvgPoolGradKernel(const NodeSpec& node)
      : WindowsKernel(node.outputs[0], node.inputs[0]) {}

  void Run(const Arguments& a) override {
    const float* dy = a.in<float>(0);
    float* dx = a.out<float>(0);
    if (in_blocks()) {
      ForBlocks([&](int64_t image, int64_t means) {
        Spread({dy + means, step()}, {dx + image, step()});
      });
      return;
    }
    ForEightPlanes(a, [&](int64_t first, int64_t count, float* image, float* means) {
      ToLanes(dy + first * means_, count, means_, means);
      Spread({means, kLane}, {image, kLane});
      FromLanes(image, count, plane_, dx + first * plane_);
    });
  }

 private:
  void Spread(const Planes<const float>& means, const Planes<float>& image) const {
    for (int64_t i = 0; i < plane_; ++i) _mm256_storeu_ps(image.at(i), _mm256_setzero_ps());
    ForWindows([&](int64_t mean, const Range& rows, const Range& columns) {
      const __m256 elements = _mm256_set1_ps(static_cast<float>(Elements(rows, columns)));
      const __m256 part = _mm256_div_ps(_mm256_loadu_ps(means.at(mean)), elements);
      ForPlaces(rows, columns, image, [&](float* place) {
        _mm256_storeu_ps(place, _mm256_add_ps(_mm256_loadu_ps(place), part));
      });
    });
  }
};

}  // namespace

std::unique_ptr<Primitive> AdaptiveAvgPool2d(const NodeSpec& node) {
  if (!Fits(node) && !LiesInBlocks(node)) return nullptr;
  return std::make_unique<AdaptiveAvgPoolKernel>(node);
}

std::unique_ptr<Primitive> AdaptiveAvgPool2dGrad(const NodeSpec& node) {
  if (!Fits(node) && !LiesInBlocks(node)) return nullptr;
  return std::make_unique<AdaptiveAvgPoolGradKernel>(node);
}

}  // namespace ringmaster::kernels::vector
