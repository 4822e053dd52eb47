// Adaptive pooling by windows of several sizes. (Where all have one size, as one of each plane has,
// the graph takes pooling by that size.) Windows are narrow, so eight planes are taken at once: in
// blocks of channels they lie side by side, and rows are turned before and behind.
#include <algorithm>
#include <vector>

#include "runtime/device/parallel.h"
#include "runtime/kernels/transpose.h"
#include "runtime/kernels/vector/blocks.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/pooling.h"
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

// What these kernels share: windows, whose elements are taken in the reference kernel's order, to
// its bits.
class WindowsKernel : public VectorPrimitive {
 public:
  size_t scratch_bytes() const override {
    const int64_t busy = std::min<int64_t>(PartsOf(planes_, kLane), device::ThreadCount());
    return in_blocks() ? 0 : static_cast<size_t>(busy) * floats() * sizeof(float);
  }

 protected:
  // `images`: how many of the image's size a plane of these takes.
  WindowsKernel(const tensor::ValueSpec& image, const tensor::ValueSpec& pooled, int64_t images)
      : planes_(image.shape.Product(0, 2)),
        width_(image.shape.dim(3)),
        plane_(image.shape.Product(2, 4)),
        pooled_(pooled.shape.Product(2, 4)),
        images_(images),
        image_walk_(image),
        pooled_walk_(pooled),
        rows_(PlacesOf(image.shape.dim(2), pooled.shape.dim(2))),
        columns_(PlacesOf(image.shape.dim(3), pooled.shape.dim(3))) {}

  bool in_blocks() const { return step() > 0; }
  int64_t step() const { return image_walk_.step(); }  // between elements of a plane in blocks

  // Calls body(where eight channels begin in an image, and in what is pooled) for all, in blocks.
  template <typename Body>
  void ForBlocks(const Body& body) const {
    const int64_t groups = image_walk_.groups();
    device::ParallelFor(planes_ / kLane, elements() * kLane, [&](int64_t task) {
      const int64_t sample = task / groups, group = task % groups;
      body(image_walk_.Begin(sample, group), pooled_walk_.Begin(sample, group));
    });
  }

  // Calls body(first plane, number of planes, what is pooled's lanes, those of the images, one
  // after another) for eight planes in rows at a time, or what is left of them.
  template <typename Body>
  void ForEightPlanes(const Arguments& a, const Body& body) const {
    ForParts(PartsOf(planes_, kLane), elements() * kLane, floats(), static_cast<float*>(a.scratch),
             [&](int64_t eight, float* scratch) {
               const int64_t first = eight * kLane;
               body(first, std::min(kLane, planes_ - first), scratch, scratch + pooled_ * kLane);
             });
  }

  // Calls body(place of what is pooled, rows, columns) for each.
  template <typename Body>
  void ForWindows(const Body& body) const {
    int64_t place = 0;
    for (const Range& rows : rows_) {
      for (const Range& columns : columns_) body(place++, rows, columns);
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

  // Planes, and elements of an image's row and plane, and of a plane of what is pooled.
  const int64_t planes_, width_, plane_, pooled_;

 private:
  int64_t elements() const { return images_ * plane_ + pooled_; }
  size_t floats() const { return static_cast<size_t>(elements() * kLane); }  // of a thread

  static std::vector<Range> PlacesOf(int64_t in, int64_t out) {
    std::vector<Range> places;
    for (int64_t o = 0; o < out; ++o) places.push_back(AdaptivePlaces(o, in, out));
    return places;
  }

  const int64_t images_;
  const LaneWalk image_walk_, pooled_walk_;
  const std::vector<Range> rows_, columns_;  // of each row and column of what is pooled
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

// From an image to what is pooled: `Window` makes the eight lanes of one window.
template <typename Window>
class AdaptivePoolKernel : public WindowsKernel {
 public:
  explicit AdaptivePoolKernel(const NodeSpec& node)
      : WindowsKernel(node.inputs[0], node.outputs[0], 1) {}

  void Run(const Arguments& a) override {
    const float* x = a.in<float>(0);
    float* y = a.out<float>(0);
    if (in_blocks()) {
      ForBlocks([&](int64_t image, int64_t pooled) {
        Pool({x + image, step()}, {y + pooled, step()});
      });
      return;
    }
    ForEightPlanes(a, [&](int64_t first, int64_t count, float* pooled, float* image) {
      ToLanes(x + first * plane_, count, plane_, image);
      Pool({image, kLane}, {pooled, kLane});
      FromLanes(pooled, count, pooled_, y + first * pooled_);
    });
  }

 private:
  void Pool(const Planes<const float>& image, const Planes<float>& pooled) const {
    ForWindows([&](int64_t place, const Range& rows, const Range& columns) {
      Window window(image.at(rows.begin * width_ + columns.begin));
      ForPlaces(rows, columns, image, [&](const float* x) { window.Take(_mm256_loadu_ps(x)); });
      _mm256_storeu_ps(pooled.at(place), window.Result(Elements(rows, columns)));
    });
  }
};

// Sums in double.
class MeanWindow {
 public:
  explicit MeanWindow(const float* /*first*/) {}
  void Take(__m256 x) {
    low_ = _mm256_add_pd(low_, LowDoubles(x));
    high_ = _mm256_add_pd(high_, HighDoubles(x));
  }
  __m256 Result(int64_t count) const {
    const __m256d elements = _mm256_set1_pd(static_cast<double>(count));
    return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_div_pd(high_, elements)),
                           _mm256_cvtpd_ps(_mm256_div_pd(low_, elements)));
  }

 private:
  __m256d low_ = _mm256_setzero_pd(), high_ = _mm256_setzero_pd();
};

class MaxWindow {
 public:
  explicit MaxWindow(const float* first) : best_(_mm256_loadu_ps(first)) {}
  void Take(__m256 x) { best_ = Larger(best_, x); }
  __m256 Result(int64_t /*count*/) const { return best_; }

 private:
  __m256 best_;
};

class AdaptiveAvgPoolGradKernel : public WindowsKernel {
 public:
  explicit AdaptiveAvgPoolGradKernel(const NodeSpec& node)
      : WindowsKernel(node.outputs[0], node.inputs[0], 1) {}

  void Run(const Arguments& a) override {
    const float* dy = a.in<float>(0);
    float* dx = a.out<float>(0);
    if (in_blocks()) {
      ForBlocks([&](int64_t image, int64_t pooled) {
        Spread({dy + pooled, step()}, {dx + image, step()});
      });
      return;
    }
    ForEightPlanes(a, [&](int64_t first, int64_t count, float* pooled, float* image) {
      ToLanes(dy + first * pooled_, count, pooled_, pooled);
      Spread({pooled, kLane}, {image, kLane});
      FromLanes(image, count, plane_, dx + first * plane_);
    });
  }

 private:
  void Spread(const Planes<const float>& pooled, const Planes<float>& image) const {
    for (int64_t i = 0; i < plane_; ++i) _mm256_storeu_ps(image.at(i), _mm256_setzero_ps());
    ForWindows([&](int64_t place, const Range& rows, const Range& columns) {
      const __m256 elements = _mm256_set1_ps(static_cast<float>(Elements(rows, columns)));
      const __m256 part = _mm256_div_ps(_mm256_loadu_ps(pooled.at(place)), elements);
      ForPlaces(rows, columns, image,
                [&](float* at) { _mm256_storeu_ps(at, _mm256_add_ps(_mm256_loadu_ps(at), part)); });
    });
  }
};

// (x, dy) -> dx
class AdaptiveMaxPoolGradKernel : public WindowsKernel {
 public:
  explicit AdaptiveMaxPoolGradKernel(const NodeSpec& node)
      : WindowsKernel(node.inputs[0], node.inputs[1], 2) {}

  void Run(const Arguments& a) override {
    const float *x = a.in<float>(0), *dy = a.in<float>(1);
    float* dx = a.out<float>(0);
    if (in_blocks()) {
      ForBlocks([&](int64_t image, int64_t pooled) {
        Spread({x + image, step()}, {dy + pooled, step()}, {dx + image, step()});
      });
      return;
    }
    ForEightPlanes(a, [&](int64_t first, int64_t count, float* pooled, float* image) {
      float* const gradient = image + plane_ * kLane;
      ToLanes(x + first * plane_, count, plane_, image);
      ToLanes(dy + first * pooled_, count, pooled_, pooled);
      Spread({image, kLane}, {pooled, kLane}, {gradient, kLane});
      FromLanes(gradient, count, plane_, dx + first * plane_);
    });
  }

 private:
  void Spread(const Planes<const float>& x, const Planes<const float>& dy,
              const Planes<float>& dx) const {
    for (int64_t i = 0; i < plane_; ++i) _mm256_storeu_ps(dx.at(i), _mm256_setzero_ps());
    ForWindows([&](int64_t place, const Range& rows, const Range& columns) {
      const __m256i largest = Largest(rows, columns, x);
      const __m256 gradient = _mm256_loadu_ps(dy.at(place));
      int32_t i = 0;
      ForPlaces(rows, columns, dx, [&](float* at) {
        const __m256i is_it = _mm256_cmpeq_epi32(largest, _mm256_set1_epi32(i++));
        const __m256 part = _mm256_and_ps(_mm256_castsi256_ps(is_it), gradient);
        _mm256_storeu_ps(at, _mm256_add_ps(_mm256_loadu_ps(at), part));
      });
    });
  }

  // Of each lane which place of the window it is, counted in row order.
  __m256i Largest(const Range& rows, const Range& columns, const Planes<const float>& x) const {
    __m256 best = _mm256_loadu_ps(x.at(rows.begin * width_ + columns.begin));
    __m256 place = _mm256_setzero_ps();
    int32_t i = 0;
    ForPlaces(rows, columns, x, [&](const float* at) {
      const __m256 value = _mm256_loadu_ps(at);
      const __m256 is_larger = SecondIsLarger(best, value);
      best = _mm256_blendv_ps(best, value, is_larger);
      place = _mm256_blendv_ps(place, _mm256_castsi256_ps(_mm256_set1_epi32(i++)), is_larger);
    });
    return _mm256_castps_si256(place);
  }
};

}  // namespace

std::unique_ptr<Primitive> AdaptiveAvgPool2d(const NodeSpec& node) {
  if (!Fits(node) && !LiesInBlocks(node)) return nullptr;
  return std::make_unique<AdaptivePoolKernel<MeanWindow>>(node);
}

std::unique_ptr<Primitive> AdaptiveAvgPool2dGrad(const NodeSpec& node) {
  if (!Fits(node) && !LiesInBlocks(node)) return nullptr;
  return std::make_unique<AdaptiveAvgPoolGradKernel>(node);
}

std::unique_ptr<Primitive> AdaptiveMaxPool2d(const NodeSpec& node) {
  if (!Fits(node) && !LiesInBlocks(node)) return nullptr;
  return std::make_unique<AdaptivePoolKernel<MaxWindow>>(node);
}

std::unique_ptr<Primitive> AdaptiveMaxPool2dGrad(const NodeSpec& node) {
  if (!Fits(node) && !LiesInBlocks(node)) return nullptr;
  return std::make_unique<AdaptiveMaxPoolGradKernel>(node);
}

}  // namespace ringmaster::kernels::vector
