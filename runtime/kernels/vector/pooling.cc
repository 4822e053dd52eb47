// Max pooling over windows of 2 x 2 that neither overlap nor leave the image, as nearly all are.
#include <algorithm>
#include <array>
#include <immintrin.h>
#include <vector>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/vector.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

constexpr int64_t kLane = 8;

bool IsTwoByTwo(const Attributes& attributes, const tensor::Shape& x) {
  const std::vector<int64_t> two{2, 2}, zero{0, 0};
  return attributes.Ints("window") == two && attributes.Ints("stride") == two &&
         attributes.Ints("padding") == zero && x.dim(2) % 2 == 0 && x.dim(3) % 2 == 0;
}

// The first `count` of eight floats, 0 to 8.
class Part {
 public:
  explicit Part(int64_t count)
      : all_(count == kLane),
        mask_(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMasks.data() + kLane - count))) {
  }

  __m256 Load(const float* from) const {
    return all_ ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, mask_);
  }
  void Store(float* to, __m256 values) const {
    all_ ? _mm256_storeu_ps(to, values) : _mm256_maskstore_ps(to, mask_, values);
  }

 private:
  static constexpr std::array<int32_t, 16> kMasks = {-1, -1, -1, -1, -1, -1, -1, -1};

  bool all_;
  __m256i mask_;
};

// Eight neighbouring windows, or as many as the row still has. Their columns lie in registers in
// the order in which a shuffle of two registers leaves them: 0 1 4 5 2 3 6 7.
class Windows {
 public:
  explicit Windows(int64_t count)
      : all_(count),
        low_(std::min(kLane, 2 * count)),
        high_(std::max<int64_t>(0, 2 * count - kLane)) {}

  struct Columns {
    __m256 left, right;
  };
  Columns Load(const float* row) const {
    const __m256 low = low_.Load(row), high = high_.Load(row + kLane);
    return {_mm256_shuffle_ps(low, high, 0x88), _mm256_shuffle_ps(low, high, 0xDD)};
  }
  void Store(float* row, const Columns& c) const {
    low_.Store(row, _mm256_unpacklo_ps(c.left, c.right));
    high_.Store(row + kLane, _mm256_unpackhi_ps(c.left, c.right));
  }
  __m256 LoadEach(const float* from) const { return Reorder(all_.Load(from)); }
  void StoreEach(float* to, __m256 values) const { all_.Store(to, Reorder(values)); }

 private:
  static __m256 Reorder(__m256 v) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xD8));
  }

  Part all_, low_, high_;
};

// Where the second is to be taken: it is larger, or no number where the first is one.
inline __m256 SecondIsLarger(__m256 first, __m256 second) {
  return _mm256_and_ps(_mm256_cmp_ps(second, first, _CMP_NLE_UQ),
                       _mm256_cmp_ps(first, first, _CMP_ORD_Q));
}

inline __m256 Larger(__m256 first, __m256 second) {
  return _mm256_blendv_ps(first, second, SecondIsLarger(first, second));
}

// Two rows of the input and one of the output at a time; rows of all planes follow one another.
class TwoByTwo : public VectorPrimitive {
 protected:
  explicit TwoByTwo(const tensor::Shape& x) : rows_(x.Product(0, 3) / 2), width_(x.dim(3) / 2) {}

  // Calls body(windows, place in the output's row) for all windows of each row.
  template <typename Body>
  void ForWindows(const Body& body) const {
    const Windows whole(kLane), rest(width_ % kLane);
    device::ParallelFor(rows_, width_, [&](int64_t row) {
      int64_t place = 0;
      for (; place + kLane <= width_; place += kLane) body(whole, row, place);
      if (place < width_) body(rest, row, place);
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
    ForWindows([&](const Windows& windows, int64_t row, int64_t place) {
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
  void Run(const Arguments& a) override {
    ForWindows([&](const Windows& windows, int64_t row, int64_t place) {
      const float* x = a.in<float>(0) + Above(row, place);
      float* dx = a.out<float>(0) + Above(row, place);
      const auto above = windows.Load(x), below = windows.Load(x + this->below());
      const __m256 dy = windows.LoadEach(a.in<float>(1) + row * width_ + place);
      const __m256 right_above = SecondIsLarger(above.left, above.right);
      const __m256 right_below = SecondIsLarger(below.left, below.right);
      const __m256 in_lower =
          SecondIsLarger(_mm256_blendv_ps(above.left, above.right, right_above),
                         _mm256_blendv_ps(below.left, below.right, right_below));
      const __m256 upper = _mm256_andnot_ps(in_lower, dy), lower = _mm256_and_ps(in_lower, dy);
      windows.Store(dx, {_mm256_andnot_ps(right_above, upper), _mm256_and_ps(right_above, upper)});
      windows.Store(dx + this->below(),
                    {_mm256_andnot_ps(right_below, lower), _mm256_and_ps(right_below, lower)});
    });
  }
};

}  // namespace

std::unique_ptr<Primitive> MaxPool2d(const NodeSpec& node) {
  if (!Fits(node) || !IsTwoByTwo(node.attributes, node.inputs[0].shape)) return nullptr;
  return std::make_unique<MaxPoolKernel>(node);
}

std::unique_ptr<Primitive> MaxPool2dGrad(const NodeSpec& node) {
  if (!Fits(node) || !IsTwoByTwo(node.attributes, node.inputs[0].shape)) return nullptr;
  return std::make_unique<MaxPoolGradKernel>(node);
}

}  // namespace ringmaster::kernels::vector
