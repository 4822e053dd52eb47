// Max pooling and its gradient, for images in blocks and any window: lanes are channels, each of
// which has its own largest element.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <immintrin.h>

#include "runtime/kernels/vector/blocks.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/pooling.h"
#include "runtime/kernels/window.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// Where a window's largest element is, the first in row order: `tap` numbers the window's places,
// in that order, for each lane.
struct Largest {
  __m256 value;
  __m256i tap;
};

// What the kernels share: windows over an image, whose results are another.
class MaxPoolOfBlocks : public VectorPrimitive {
 protected:
  MaxPoolOfBlocks(const tensor::ValueSpec& image, const tensor::ValueSpec& result,
                  const Attributes& attributes)
      : image_(image), result_(result) {
    const auto window = attributes.Ints("window");
    window_ = MakeWindow(image.shape, result.shape, window[0], window[1], attributes);
    tiles_ = Tiles(window_.h) && Tiles(window_.w);
  }

  // Calls body(begin of the image's plane, of the result's), of eight channels each, in floats, for
  // all.
  template <typename Body>
  void ForPlanes(const Body& body) const {
    const int64_t groups = image_.groups();
    device::ParallelFor(image_.batch() * groups, image_.plane() * kLane, [&](int64_t task) {
      const int64_t n = task / groups, group = task % groups;
      body(image_.Begin(n, group), result_.Begin(n, group));
    });
  }

  // Calls body(row, column, place behind the plane's begin, in floats) for all results.
  template <typename Body>
  void ForWindows(const Body& body) const {
    for (int64_t row = 0; row < window_.h.out; ++row) {
      for (int64_t column = 0; column < window_.w.out; ++column)
        body(row, column, (row * window_.w.out + column) * result_.step());
    }
  }

  // The value alone.
  __m256 LargestValueOf(int64_t row, int64_t column, const float* x) const {
    const Range rows = window_.h.Taps(row), columns = window_.w.Taps(column);
    __m256 found = _mm256_loadu_ps(x + At(row, column, rows.begin, columns.begin));
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j)
        found = Larger(found, _mm256_loadu_ps(x + At(row, column, i, j)));
    }
    return found;
  }

  Largest LargestOf(int64_t row, int64_t column, const float* x) const {
    const Range rows = window_.h.Taps(row), columns = window_.w.Taps(column);
    const auto tap = [&](int64_t i, int64_t j) {
      return _mm256_set1_epi32(static_cast<int>(i * window_.w.window + j));
    };
    Largest found{_mm256_loadu_ps(x + At(row, column, rows.begin, columns.begin)),
                  tap(rows.begin, columns.begin)};
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        const __m256 value = _mm256_loadu_ps(x + At(row, column, i, j));
        const __m256 takes = SecondIsLarger(found.value, value);
        found.value = _mm256_blendv_ps(found.value, value, takes);
        found.tap = _mm256_blendv_epi8(found.tap, tap(i, j), _mm256_castps_si256(takes));
      }
    }
    return found;
  }

  // What must lie in a plane of the image's gradient before windows add to it.
  void Clear(float* dx) const {
    if (tiles_) return;
    for (int64_t i = 0; i < image_.plane(); ++i)
      _mm256_storeu_ps(dx + i * image_.step(), _mm256_setzero_ps());
  }

  // Adds a window's gradient where its largest element was.
  void Spread(int64_t row, int64_t column, __m256i tap, __m256 dy, float* dx) const {
    const Range rows = window_.h.Taps(row), columns = window_.w.Taps(column);
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        float* to = dx + At(row, column, i, j);
        const __m256i here = _mm256_set1_epi32(static_cast<int>(i * window_.w.window + j));
        const __m256 share = _mm256_and_ps(dy, _mm256_castsi256_ps(_mm256_cmpeq_epi32(tap, here)));
        _mm256_storeu_ps(to, tiles_ ? share : _mm256_add_ps(_mm256_loadu_ps(to), share));
      }
    }
  }

 private:
  // Whether each element lies in one window.
  static bool Tiles(const Axis& axis) {
    return axis.stride == axis.window && axis.padding == 0 && axis.out * axis.window == axis.in;
  }

  int64_t At(int64_t row, int64_t column, int64_t i, int64_t j) const {
    return (window_.h.InputAt(row, i) * window_.w.in + window_.w.InputAt(column, j)) *
           image_.step();
  }

  const LaneWalk image_, result_;
  Window window_;
  bool tiles_;
};

// (x) -> y
class MaxPoolKernel : public MaxPoolOfBlocks {
 public:
  explicit MaxPoolKernel(const NodeSpec& node)
      : MaxPoolOfBlocks(node.inputs[0], node.outputs[0], node.attributes) {}

  void Run(const Arguments& a) override {
    ForPlanes([&](int64_t image, int64_t result) {
      const float* x = a.in<float>(0) + image;
      float* y = a.out<float>(0) + result;
      ForWindows([&](int64_t row, int64_t column, int64_t at) {
        _mm256_storeu_ps(y + at, LargestValueOf(row, column, x));
      });
    });
  }
};

// (x, dy) -> dx: the first of the largest, in row order, gets it all.
class MaxPoolGradKernel : public MaxPoolOfBlocks {
 public:
  explicit MaxPoolGradKernel(const NodeSpec& node)
      : MaxPoolOfBlocks(node.inputs[0], node.inputs[1], node.attributes) {}

  void Run(const Arguments& a) override {
    ForPlanes([&](int64_t image, int64_t result) {
      const float *x = a.in<float>(0) + image, *dy = a.in<float>(1) + result;
      float* dx = a.out<float>(0) + image;
      Clear(dx);
      ForWindows([&](int64_t row, int64_t column, int64_t at) {
        Spread(row, column, LargestOf(row, column, x).tap, _mm256_loadu_ps(dy + at), dx);
      });
    });
  }
};

// (x) -> (y, taps)
class MaxPoolTapsKernel : public MaxPoolOfBlocks {
 public:
  explicit MaxPoolTapsKernel(const NodeSpec& node)
      : MaxPoolOfBlocks(node.inputs[0], node.outputs[0], node.attributes) {}

  void Run(const Arguments& a) override {
    ForPlanes([&](int64_t image, int64_t result) {
      const float* x = a.in<float>(0) + image;
      float* y = a.out<float>(0) + result;
      auto* taps = a.out<uint8_t>(1) + result;
      ForWindows([&](int64_t row, int64_t column, int64_t at) {
        const Largest found = LargestOf(row, column, x);
        _mm256_storeu_ps(y + at, found.value);
        const uint64_t bytes = ToBytes(found.tap);
        std::memcpy(taps + at, &bytes, sizeof(bytes));
      });
    });
  }
};

// (dy, taps) -> dx
class MaxPoolTapsGradKernel : public MaxPoolOfBlocks {
 public:
  explicit MaxPoolTapsGradKernel(const NodeSpec& node)
      : MaxPoolOfBlocks(node.outputs[0], node.inputs[0], node.attributes) {}

  void Run(const Arguments& a) override {
    ForPlanes([&](int64_t image, int64_t result) {
      const float* dy = a.in<float>(0) + result;
      const auto* taps = a.in<uint8_t>(1) + result;
      float* dx = a.out<float>(0) + image;
      Clear(dx);
      ForWindows([&](int64_t row, int64_t column, int64_t at) {
        uint64_t bytes;
        std::memcpy(&bytes, taps + at, sizeof(bytes));
        Spread(row, column, FromBytes(bytes), _mm256_loadu_ps(dy + at), dx);
      });
    });
  }
};

}  // namespace

std::unique_ptr<Primitive> MaxPool2dOfBlocks(const NodeSpec& node) {
  // An image of a single pixel lies alike in all layouts.
  tensor::ValueSpec result = node.outputs[0];
  if (result.shape.Product(2, 4) == 1) result.layout = node.inputs[0].layout;
  const NodeSpec alike{node.op, node.attributes, node.inputs, {&result, 1}};
  if (!LiesInBlocks(alike)) return nullptr;
  return std::make_unique<MaxPoolKernel>(alike);
}

std::unique_ptr<Primitive> MaxPool2dGradOfBlocks(const NodeSpec& node) {
  if (!LiesInBlocks(node)) return nullptr;
  return std::make_unique<MaxPoolGradKernel>(node);
}

std::unique_ptr<Primitive> MaxPool2dTapsOfBlocks(const NodeSpec& node) {
  if (!LiesInBlocksWithTaps(node)) return nullptr;
  return std::make_unique<MaxPoolTapsKernel>(node);
}

std::unique_ptr<Primitive> MaxPool2dTapsGradOfBlocks(const NodeSpec& node) {
  if (!LiesInBlocksWithTaps(node)) return nullptr;
  return std::make_unique<MaxPoolTapsGradKernel>(node);
}

}  // namespace ringmaster::kernels::vector
