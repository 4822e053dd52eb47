// Max pooling over windows of 2 x 2 that neither overlap nor leave the image, as nearly all are,
// and the gradient of that over windows of 3 x 3, two apart.
#include "runtime/kernels/vector/pooling.h"

#include <algorithm>
#include <array>
#include <immintrin.h>
#include <vector>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/blocks.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/two_by_two.h"
#include "runtime/kernels/vector/vector.h"
#include "runtime/kernels/window.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// Two rows of the input and one of the output at a time; rows of all planes follow one another.
class TwoByTwo : public VectorPrimitive {
 protected:
  explicit TwoByTwo(const tensor::Shape& x) : rows_(x.Product(0, 3) / 2), width_(x.dim(3) / 2) {}

  // Calls body(windows, row of the output, place in it) for all windows, each once.
  template <typename Body>
  void ForWindows(const Body& body) const {
    device::ParallelFor(PartsOf(rows_, 2), 2 * width_, [&](int64_t pair) {
      ForWindowsOfRows(2 * pair, std::min(2 * pair + 2, rows_), width_, body);
    });
  }

  // Of an output's place, in the input: the row above, and how far the one below is.
  int64_t Above(int64_t row, int64_t place) const { return row * below() * 2 + 2 * place; }
  int64_t below() const { return 2 * width_; }

  const int64_t rows_;   // of the output
  const int64_t width_;  // of such a row
};

class MaxPoolKernel : public TwoByTwo {
 public:
  explicit MaxPoolKernel(const NodeSpec& node) : TwoByTwo(node.inputs[0].shape) {}
  void Run(const Arguments& a) override {
    ForWindows([&](const auto& windows, int64_t row, int64_t place) {
      const float* x = a.in<float>(0) + Above(row, place);
      const auto above = windows.Load(x), below = windows.Load(x + this->below());
      windows.StoreEach(a.out<float>(0) + row * width_ + place,
                        Larger(Larger(above.left, above.right), Larger(below.left, below.right)));
    });
  }
};

// (x, dy) -> dx: the first of the largest, in row order, gets it all.
class MaxPoolGradKernel : public TwoByTwo {
 public:
  explicit MaxPoolGradKernel(const NodeSpec& node) : TwoByTwo(node.inputs[0].shape) {}

  // The image, a few windows at a time.
  bool MayOverwrite(int input, int output) const override { return input == 0 && output == 0; }

  void Run(const Arguments& a) override {
    ForWindows([&](const auto& windows, int64_t row, int64_t place) {
      const float* x = a.in<float>(0) + Above(row, place);
      float* dx = a.out<float>(0) + Above(row, place);
      const auto above = windows.Load(x), below = windows.Load(x + this->below());
      const __m256 dy = windows.LoadEach(a.in<float>(1) + row * width_ + place);
      const WindowPlaces places = WindowPlaces::OfLargest(above, below);
      windows.Store(dx, places.InUpper(dy));
      windows.Store(dx + this->below(), places.InLower(dy));
    });
  }
};

bool IsThreeByTwo(const Attributes& attributes) {
  const std::vector<int64_t> two{2, 2}, three{3, 3};
  return attributes.Ints("window") == three && attributes.Ints("stride") == two;
}

// (x, dy) -> dx for windows of 3 x 3, two apart: the first of the largest, in row order, gets it
// all. Gradients are added in the order of the outputs.
class OverlappingMaxPoolGradKernel : public VectorPrimitive {
 public:
  explicit OverlappingMaxPoolGradKernel(const NodeSpec& node)
      : planes_(node.inputs[0].shape.Product(0, 2)),
        window_(MakeWindow(node.inputs[0].shape, node.inputs[1].shape, kSide, kSide,
                           node.attributes)) {}

  void Run(const Arguments& a) override {
    const int64_t in = window_.h.in * window_.w.in, out = window_.h.out * window_.w.out;
    device::ParallelFor(planes_, in + 4 * out, [&](int64_t plane) {
      float* dx = a.out<float>(0) + plane * in;
      std::fill_n(dx, in, 0.0F);
      for (int64_t row = 0; row < window_.h.out; ++row) {
        RunRow(row, a.in<float>(0) + plane * in, a.in<float>(1) + plane * out + row * window_.w.out,
               dx);
      }
    });
  }

 private:
  static constexpr int64_t kSide = 3;

  void RunRow(int64_t row, const float* x, const float* dy, float* dx) const {
    int64_t place = 0;
    for (; place < eights_.begin; ++place) One(row, place, x, dy, dx);
    // The last eight may begin among those that are done.
    for (; place < eights_.end; place = std::min(place + kLane, eights_.end))
      Eight(row, std::min(place, eights_.end - kLane), place, x, dy, dx);
    for (; place < window_.w.out; ++place) One(row, place, x, dy, dx);
  }

  void One(int64_t row, int64_t place, const float* x, const float* dy, float* dx) const {
    const Range rows = window_.h.Taps(row), columns = window_.w.Taps(place);
    int64_t best = -1;
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        const int64_t at = At(row, place, i, j);
        if (best < 0 || SecondIsLarger(x[best], x[at])) best = at;
      }
    }
    dx[best] += dy[place];
  }

  // Outputs `begin` to begin + 7, of which those before `from` have had their turn.
  void Eight(int64_t row, int64_t begin, int64_t from, const float* x, const float* dy,
             float* dx) const {
    const Range rows = window_.h.Taps(row);
    __m256 best{}, tap{};  // the number of its tap, as an integer
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const float* columns = x + At(row, begin, i, 0);
      const __m256 low = _mm256_loadu_ps(columns), high = _mm256_loadu_ps(columns + kLane);
      // Nothing behind the last window is read.
      const __m256 low2 = _mm256_loadu_ps(columns + 2), high2 = _mm256_loadu_ps(columns + 9);
      const __m256 values[kSide] = {_mm256_shuffle_ps(low, high, 0x88),
                                    _mm256_shuffle_ps(low, high, 0xDD),
                                    _mm256_shuffle_ps(low2, high2, 0xD8)};
      for (int64_t j = 0; j < kSide; ++j) {
        const __m256 number =
            _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int32_t>(i * kSide + j)));
        const bool is_first = i == rows.begin && j == 0;
        const __m256 larger = SecondIsLarger(best, values[j]);
        best = is_first ? values[j] : _mm256_blendv_ps(best, values[j], larger);
        tap = is_first ? number : _mm256_blendv_ps(tap, number, larger);
      }
    }
    std::array<int32_t, kLane> taps;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(taps.data()), _mm256_castps_si256(InOrder(tap)));
    for (int64_t place = from; place < begin + kLane; ++place) {
      const int64_t number = taps[static_cast<size_t>(place - begin)];
      dx[At(row, place, number / kSide, number % kSide)] += dy[place];
    }
  }

  // Where in the image's plane a tap of an output's window lies.
  int64_t At(int64_t row, int64_t place, int64_t i, int64_t j) const {
    return window_.h.InputAt(row, i) * window_.w.in + window_.w.InputAt(place, j);
  }

  const int64_t planes_;
  const Window window_;
  const Range eights_ = Eights(window_.w);
};

}  // namespace

std::unique_ptr<Primitive> MaxPool2d(const NodeSpec& node) {
  if (!Fits(node)) return MaxPool2dOfBlocks(node);
  if (IsTwoByTwo(node.attributes, node.inputs[0].shape))
    return std::make_unique<MaxPoolKernel>(node);
  return MaxPool2dOfRows(node);
}

std::unique_ptr<Primitive> MaxPool2dGrad(const NodeSpec& node) {
  if (!Fits(node)) return MaxPool2dGradOfBlocks(node);
  if (IsTwoByTwo(node.attributes, node.inputs[0].shape))
    return std::make_unique<MaxPoolGradKernel>(node);
  if (IsThreeByTwo(node.attributes)) return std::make_unique<OverlappingMaxPoolGradKernel>(node);
  return nullptr;
}

// Only images in blocks keep them.
std::unique_ptr<Primitive> MaxPool2dTaps(const NodeSpec& node) {
  return MaxPool2dTapsOfBlocks(node);
}

std::unique_ptr<Primitive> MaxPool2dTapsGrad(const NodeSpec& node) {
  return MaxPool2dTapsGradOfBlocks(node);
}

}  // namespace ringmaster::kernels::vector
