// Sums over the axes that broadcasting would have added, of the two kinds that gradients of biases
// are: down the rows of a matrix, and over samples and places of each channel. In double; each
// element by one thread, in the input's order. And the largest over neighbouring axes.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/blocks.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/vector.h"
#include "runtime/kernels/vector/wide_lanes.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

// Neighbouring axes that are all kept, or all summed, taken as one.
struct AxisRun {
  bool kept;
  int64_t extent;
};

// x's axes as runs, those of one element left out.
std::vector<AxisRun> RunsOf(const tensor::Shape& x, const tensor::Shape& y) {
  std::vector<AxisRun> runs;
  const int missing = x.rank() - y.rank();
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (x.dim(axis) == 1) continue;
    const bool kept = axis >= missing && y.dim(axis - missing) == x.dim(axis);
    if (!runs.empty() && runs.back().kept == kept) {
      runs.back().extent *= x.dim(axis);
    } else {
      runs.push_back({kept, x.dim(axis)});
    }
  }
  return runs;
}

inline __m256d SumOfFour(__m256d a, __m256d b, __m256d c, __m256d d) {
  return _mm256_add_pd(_mm256_add_pd(a, b), _mm256_add_pd(c, d));
}

// The sums of eight columns of a matrix whose rows are `stride` apart: four rows are added up
// before they are added to those before. With AVX-512 to the same bits.
template <typename Lanes>
void SumEightColumns(Lanes lanes, int64_t rows, int64_t stride, const float* x, float* y) {
  __m256d low = _mm256_setzero_pd(), high = _mm256_setzero_pd();
  const auto row = [&](int64_t r) { return lanes.Load(x + r * stride); };
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const __m256 a = row(r), b = row(r + 1), c = row(r + 2), d = row(r + 3);
    low = _mm256_add_pd(low, SumOfFour(LowDoubles(a), LowDoubles(b), LowDoubles(c), LowDoubles(d)));
    high = _mm256_add_pd(high,
                         SumOfFour(HighDoubles(a), HighDoubles(b), HighDoubles(c), HighDoubles(d)));
  }
  for (; r < rows; ++r) {
    const __m256 a = row(r);
    low = _mm256_add_pd(low, LowDoubles(a));
    high = _mm256_add_pd(high, HighDoubles(a));
  }
  lanes.Store(y, _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low)));
}

#pragma GCC push_options
#pragma GCC target("avx512f,fma")

template <typename Lanes>
void SumEightColumnsWide(Lanes lanes, int64_t rows, int64_t stride, const float* x, float* y) {
  const auto row = [&](int64_t r) {
    return _mm512_maskz_cvtps_pd(kAllDoubles, lanes.Load(x + r * stride));
  };
  __m512d sum = _mm512_setzero_pd();
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    sum = _mm512_add_pd(sum, _mm512_add_pd(_mm512_add_pd(row(r), row(r + 1)),
                                           _mm512_add_pd(row(r + 2), row(r + 3))));
  }
  for (; r < rows; ++r) sum = _mm512_add_pd(sum, row(r));
  lanes.Store(y, _mm512_maskz_cvtpd_ps(kAllDoubles, sum));
}

#pragma GCC pop_options

// [rows, columns] -> [columns]
class SumRowsKernel : public VectorPrimitive {
 public:
  SumRowsKernel(int64_t rows, int64_t columns) : rows_(rows), columns_(columns) {}

  void Run(const Arguments& a) override {
    const int64_t blocks = (columns_ + kBlock - 1) / kBlock;
    device::ParallelFor(blocks, rows_ * kBlock / 4, [&](int64_t block) {
      const int64_t first = block * kBlock;
      SumBlock(a.in<float>(0) + first, std::min(kBlock, columns_ - first), a.out<float>(0) + first);
    });
  }

 private:
  static constexpr int64_t kBlock = 128;  // columns

  void SumBlock(const float* x, int64_t width, float* y) const {
    const bool wide = UsesWideTiles();
    ForLanes(width, [&](auto lanes, int64_t j) {
      wide ? SumEightColumnsWide(lanes, rows_, columns_, x + j, y + j)
           : SumEightColumns(lanes, rows_, columns_, x + j, y + j);
    });
  }

  const int64_t rows_, columns_;
};

// [outer, channels, inner] -> [channels]
class SumPlanesKernel : public VectorPrimitive {
 public:
  SumPlanesKernel(int64_t outer, int64_t channels, int64_t inner)
      : outer_(outer), channels_(channels), inner_(inner) {}

  void Run(const Arguments& a) override {
    device::ParallelFor(channels_, outer_ * inner_ / 4, [&](int64_t c) {
      Sum sum;
      for (int64_t n = 0; n < outer_; ++n) {
        const float* x = a.in<float>(0) + (n * channels_ + c) * inner_;
        ForLanes(inner_, [&](auto lanes, int64_t i) { sum.Add(lanes.Load(x + i)); });
      }
      a.out<float>(0)[c] = static_cast<float>(sum.Total());
    });
  }

 private:
  const int64_t outer_, channels_, inner_;
};

// [outer, extent, inner]: of each [extent] one place is kept.
struct Middle {
  int64_t outer = 1, extent = 1, inner = 1;
};

// x's axes so, where neighbouring ones alone are reduced.
std::optional<Middle> MiddleOf(const tensor::Shape& x, const tensor::Shape& y) {
  std::vector<AxisRun> runs = RunsOf(x, y);
  if (runs.empty() || !runs.front().kept) runs.insert(runs.begin(), {true, 1});
  if (runs.size() == 1) runs.push_back({false, 1});
  if (runs.size() == 2) runs.push_back({true, 1});
  if (runs.size() > 3) return std::nullopt;
  return Middle{runs[0].extent, runs[1].extent, runs[2].extent};
}

// The larger, or what is no number.
inline __m256 LargerOf(__m256 largest, __m256 x) {
  const __m256 larger = _mm256_max_ps(largest, x);
  return _mm256_blendv_ps(larger, largest, _mm256_cmp_ps(largest, largest, _CMP_UNORD_Q));
}

class MaxOverKernel : public VectorPrimitive {
 public:
  explicit MaxOverKernel(const Middle& m) : m_(m) {}

  void Run(const Arguments& a) override {
    device::ParallelFor(m_.outer, m_.extent * m_.inner / 4, [&](int64_t o) {
      const float* x = a.in<float>(0) + o * m_.extent * m_.inner;
      if (m_.inner == 1) {
        a.out<float>(0)[o] = LargestOf(x);
      } else {
        LargestOfColumns(x, a.out<float>(0) + o * m_.inner);
      }
    });
  }

 private:
  float LargestOf(const float* x) const {
    const __m256 least = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
    __m256 all = least;
    ForLanes(m_.extent,
             [&](auto lanes, int64_t i) { all = LargerOf(all, lanes.LoadOr(x + i, least)); });
    std::array<float, kLane> each;
    _mm256_storeu_ps(each.data(), all);
    float largest = each[0];
    for (const float one : each) largest = one > largest || one != one ? one : largest;
    return largest;
  }

  void LargestOfColumns(const float* x, float* y) const {
    ForLanes(m_.inner, [&](auto lanes, int64_t j) {
      __m256 largest = lanes.Load(x + j);
      for (int64_t i = 1; i < m_.extent; ++i)
        largest = LargerOf(largest, lanes.Load(x + i * m_.inner + j));
      lanes.Store(y + j, largest);
    });
  }

  const Middle m_;
};

// (x, y, dy) -> dy at the first of each place's elements that is the largest.
class MaxOverGradKernel : public VectorPrimitive {
 public:
  explicit MaxOverGradKernel(const Middle& m) : m_(m) {}

  void Run(const Arguments& a) override {
    device::ParallelFor(m_.outer, m_.extent * m_.inner / 2, [&](int64_t o) {
      const int64_t begin = o * m_.extent * m_.inner, place = o * m_.inner;
      const float *x = a.in<float>(0) + begin, *y = a.in<float>(1) + place,
                  *dy = a.in<float>(2) + place;
      float* dx = a.out<float>(0) + begin;
      if (m_.inner == 1) {
        std::fill_n(dx, m_.extent, 0.0F);
        const float* first = std::find(x, x + m_.extent, *y);
        if (first != x + m_.extent) dx[first - x] = *dy;
      } else {
        PassToColumns(x, y, dy, dx);
      }
    });
  }

 private:
  void PassToColumns(const float* x, const float* y, const float* dy, float* dx) const {
    ForLanes(m_.inner, [&](auto lanes, int64_t j) {
      const __m256 largest = lanes.Load(y + j);
      __m256 left = lanes.Load(dy + j);  // zero where it has been given away
      for (int64_t i = 0; i < m_.extent; ++i) {
        const __m256 is_largest =
            _mm256_cmp_ps(lanes.Load(x + i * m_.inner + j), largest, _CMP_EQ_OQ);
        lanes.Store(dx + i * m_.inner + j, _mm256_and_ps(is_largest, left));
        left = _mm256_andnot_ps(is_largest, left);
      }
    });
  }

  const Middle m_;
};

}  // namespace

std::unique_ptr<Primitive> MaxOver(const NodeSpec& node) {
  const auto middle = MiddleOf(node.inputs[0].shape, node.outputs[0].shape);
  return Fits(node) && middle ? std::make_unique<MaxOverKernel>(*middle) : nullptr;
}

std::unique_ptr<Primitive> MaxOverGrad(const NodeSpec& node) {
  const auto middle = MiddleOf(node.inputs[0].shape, node.inputs[1].shape);
  return Fits(node) && middle ? std::make_unique<MaxOverGradKernel>(*middle) : nullptr;
}

std::unique_ptr<Primitive> SumTo(const NodeSpec& node) {
  if (!Fits(node)) return SumToOfBlocks(node);
  const std::vector<AxisRun> runs = RunsOf(node.inputs[0].shape, node.outputs[0].shape);
  if (runs.size() == 2 && !runs[0].kept)
    return std::make_unique<SumRowsKernel>(runs[0].extent, runs[1].extent);
  if (runs.size() == 3 && !runs[0].kept)
    return std::make_unique<SumPlanesKernel>(runs[0].extent, runs[1].extent, runs[2].extent);
  if (runs.size() == 2) return std::make_unique<SumPlanesKernel>(1, runs[0].extent, runs[1].extent);
  return nullptr;
}

}  // namespace ringmaster::kernels::vector
