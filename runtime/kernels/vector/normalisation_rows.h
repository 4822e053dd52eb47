// What the batch norm kernels of images in rows share. Internal to this folder, for files that are
// compiled for AVX2 and FMA.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_NORMALISATION_ROWS_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_NORMALISATION_ROWS_H_

#include <cstdint>
#include <immintrin.h>

#include "runtime/device/parallel.h"
#include "runtime/kernels/vector/batch_norm.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {

// dx of eight elements of a channel from x and dy, by BatchGradient's coefficients.
class RowGradient {
 public:
  RowGradient(const BatchGradient& g, __m256 means)
      : means_(means),
        slope_(_mm256_set1_ps(g.slope)),
        along_(_mm256_set1_ps(g.along)),
        offset_(_mm256_set1_ps(g.offset)) {}

  __m256 operator()(__m256 x, __m256 dy) const {
    const __m256 rest = _mm256_fmadd_ps(along_, _mm256_sub_ps(x, means_), offset_);
    return _mm256_fmadd_ps(slope_, dy, rest);
  }

 private:
  __m256 means_, slope_, along_, offset_;
};

// Visits x [N, C, H, W] by channel: in each of N samples a run of H * W elements.
class ChannelKernel : public VectorPrimitive {
 protected:
  explicit ChannelKernel(const NodeSpec& node)
      : batch_(node.inputs[0].shape.dim(0)),
        channels_(node.inputs[0].shape.dim(1)),
        plane_(node.inputs[0].shape.Product(2, node.inputs[0].shape.rank())),
        epsilon_(node.attributes.Real("epsilon")) {}

  double count() const { return static_cast<double>(batch_ * plane_); }

  template <typename Body>
  void ForChannels(const Body& body) const {
    device::ParallelFor(channels_, batch_ * plane_, body);
  }

  // Calls body(index of a run's first element) for the channel's runs.
  template <typename Body>
  void ForRuns(int64_t c, const Body& body) const {
    for (int64_t n = 0; n < batch_; ++n) body((n * channels_ + c) * plane_);
  }

  // As they are kept.
  struct Statistics {
    float mean, variance;
  };
  // In one pass, of the differences to the channel's first element: what is then subtracted is
  // small, and the sums are in double.
  Statistics StatisticsOf(const float* x, int64_t c) const {
    const float first = x[c * plane_];
    const __m256 firsts = _mm256_set1_ps(first);
    Sum sum, squares;
    ForRuns(c, [&](int64_t at) {
      ForLanes(plane_, [&](auto lanes, int64_t i) {
        const __m256 d = _mm256_sub_ps(lanes.LoadOr(x + at + i, firsts), firsts);
        sum.Add(d);
        squares.AddProduct(d, d);
      });
    });
    const double mean = sum.Total() / count();
    // Not std::max, which would make 0 of what is no number.
    const double variance = squares.Total() / count() - mean * mean;
    return {static_cast<float>(static_cast<double>(first) + mean),
            static_cast<float>(variance < 0 ? 0.0 : variance)};
  }

  const int64_t batch_, channels_, plane_;
  const double epsilon_;
};

}  // namespace ringmaster::kernels::vector

#pragma GCC pop_options

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_NORMALISATION_ROWS_H_
