// Max pooling over images in rows, for any window: lanes are neighbouring windows.
#include <algorithm>
#include <immintrin.h>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/pooling.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

class MaxPoolOfRowsKernel : public VectorPrimitive {
 public:
  explicit MaxPoolOfRowsKernel(const NodeSpec& node) : planes_(node.inputs[0].shape.Product(0, 2)) {
    const auto window = node.attributes.Ints("window");
    window_ = MakeWindow(node.inputs[0].shape, node.outputs[0].shape, window[0], window[1],
                         node.attributes);
    eights_ = Eights(window_.w);
  }

  void Run(const Arguments& a) override {
    const int64_t rows = window_.h.out, width = window_.w.out;
    const int64_t taps = window_.h.window * window_.w.window;
    device::ParallelFor(planes_ * rows, width * taps, [&](int64_t task) {
      const float* x = a.in<float>(0) + task / rows * window_.h.in * window_.w.in;
      RunRow(task % rows, x, a.out<float>(0) + task * width);
    });
  }

 private:
  void RunRow(int64_t row, const float* x, float* y) const {
    int64_t place = 0;
    for (; place < eights_.begin; ++place) y[place] = One(row, place, x);
    // The last eight may begin among those that are done.
    for (; place < eights_.end; place = std::min(place + kLane, eights_.end)) {
      const int64_t begin = std::min(place, eights_.end - kLane);
      _mm256_storeu_ps(y + begin, Eight(row, begin, x));
    }
    for (; place < window_.w.out; ++place) y[place] = One(row, place, x);
  }

  float One(int64_t row, int64_t place, const float* x) const {
    const Range rows = window_.h.Taps(row), columns = window_.w.Taps(place);
    float best = x[At(row, place, rows.begin, columns.begin)];
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        const float value = x[At(row, place, i, j)];
        if (SecondIsLarger(best, value)) best = value;
      }
    }
    return best;
  }

  __m256 Eight(int64_t row, int64_t begin, const float* x) const {
    const Range rows = window_.h.Taps(row);
    __m256 best = Load(x + At(row, begin, rows.begin, 0));
    for (int64_t i = rows.begin; i < rows.end; ++i) {
      const float* taps = x + At(row, begin, i, 0);
      for (int64_t j = 0; j < window_.w.window; ++j) best = Larger(best, Load(taps + j));
    }
    return best;
  }

  // The same tap of eight windows.
  __m256 Load(const float* from) const {
    if (window_.w.stride == 1) return _mm256_loadu_ps(from);
    const __m256i apart = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                             _mm256_set1_epi32(static_cast<int>(window_.w.stride)));
    return _mm256_i32gather_ps(from, apart, sizeof(float));
  }

  int64_t At(int64_t row, int64_t place, int64_t i, int64_t j) const {
    return window_.h.InputAt(row, i) * window_.w.in + window_.w.InputAt(place, j);
  }

  const int64_t planes_;
  Window window_;
  Range eights_;
};

}  // namespace

std::unique_ptr<Primitive> MaxPool2dOfRows(const NodeSpec& node) {
  return std::make_unique<MaxPoolOfRowsKernel>(node);
}

}  // namespace ringmaster::kernels::vector
