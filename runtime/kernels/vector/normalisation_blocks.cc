// Batch norm where eight channels are a vector's lanes: each lane adds up its own channel, in
// double and in the order of the samples. Memory is what it costs: one pass for the statistics, one
// for the result, with the addend and ReLU in the same pass.
#include <algorithm>
#include <immintrin.h>

#include "runtime/kernels/vector/batch_norm.h"
#include "runtime/kernels/vector/blocks.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

constexpr int64_t kLanes = LaneWalk::kLanes;

// Eight sums in double.
class LaneSums {
 public:
  LaneSums() : low_(_mm256_setzero_pd()), high_(_mm256_setzero_pd()) {}

  void Add(__m256 v) {
    low_ = _mm256_add_pd(low_, Low(v));
    high_ = _mm256_add_pd(high_, High(v));
  }
  void AddProduct(__m256 v, __m256 w) {
    low_ = _mm256_fmadd_pd(Low(v), Low(w), low_);
    high_ = _mm256_fmadd_pd(High(v), High(w), high_);
  }
  // All eight.
  void Get(double* sums) const {
    _mm256_storeu_pd(sums, low_);
    _mm256_storeu_pd(sums + kLanes / 2, high_);
  }

 private:
  static __m256d Low(__m256 v) { return _mm256_cvtps_pd(_mm256_castps256_ps128(v)); }
  static __m256d High(__m256 v) { return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)); }

  __m256d low_, high_;
};

// Eight channels' BatchAffine.
struct LaneAffine {
  __m256 slope, offset;

  LaneAffine(const float* gamma, const float* beta, const float* mean, const float* variance,
             double epsilon) {
    float slopes[kLanes], offsets[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      const BatchAffine f(gamma[i], beta[i], mean[i], variance[i], epsilon);
      slopes[i] = f.slope;
      offsets[i] = f.offset;
    }
    slope = _mm256_loadu_ps(slopes);
    offset = _mm256_loadu_ps(offsets);
  }
  __m256 operator()(__m256 x) const { return _mm256_fmadd_ps(x, slope, offset); }
};

class BlocksKernel : public VectorPrimitive {
 protected:
  explicit BlocksKernel(const NodeSpec& node)
      : walk_(node.inputs[0]), epsilon_(node.attributes.Real("epsilon")) {}

  double count() const { return static_cast<double>(walk_.batch() * walk_.plane()); }

  const LaneWalk walk_;
  const double epsilon_;
};

// How batch norm's result follows from statistics, with an addend, behind the other inputs, and
// ReLU where the node has them.
class NormaliseBlocksKernel : public BlocksKernel {
 public:
  // x or the addend by y.
  bool MayOverwrite(int input, int output) const override {
    return (input == 0 || input == addend_) && output == 0;
  }

 protected:
  NormaliseBlocksKernel(const NodeSpec& node, size_t addend)
      : BlocksKernel(node),
        addend_(static_cast<int>(addend)),
        has_addend_(node.inputs.size() > addend),
        relu_(node.attributes.Int("relu") != 0) {}

  // Of all channels, the means and variances.
  void Normalise(const Arguments& a, int64_t group, const float* means,
                 const float* variances) const {
    const int64_t c = group * kLanes;
    const LaneAffine f(a.in<float>(1) + c, a.in<float>(2) + c, means + c, variances + c, epsilon_);
    const float* x = a.in<float>(0);
    float* y = a.out<float>(0);
    const __m256 zero = _mm256_setzero_ps();
    const auto finish = [&](int64_t at, __m256 sum) {
      // Of two operands, the second is the result where one is no number: it stays.
      _mm256_storeu_ps(y + at, relu_ ? _mm256_max_ps(zero, sum) : sum);
    };
    if (has_addend_) {
      const float* addend = a.in<float>(addend_);
      walk_.ForPixels(group, [&](int64_t at) {
        finish(at, _mm256_add_ps(f(_mm256_loadu_ps(x + at)), _mm256_loadu_ps(addend + at)));
      });
    } else {
      walk_.ForPixels(group, [&](int64_t at) { finish(at, f(_mm256_loadu_ps(x + at))); });
    }
  }

 private:
  const int addend_;
  const bool has_addend_, relu_;
};

// (x, gamma, beta, mean, variance[, addend]) -> y.
class BatchNormAgainBlocksKernel : public NormaliseBlocksKernel {
 public:
  explicit BatchNormAgainBlocksKernel(const NodeSpec& node) : NormaliseBlocksKernel(node, 5) {}

  void Run(const Arguments& a) override {
    walk_.ForGroups([&](int64_t group) { Normalise(a, group, a.in<float>(3), a.in<float>(4)); });
  }
};

// (x, gamma, beta[, addend]) -> (y, mean, variance).
class BatchNormBlocksKernel : public NormaliseBlocksKernel {
 public:
  explicit BatchNormBlocksKernel(const NodeSpec& node) : NormaliseBlocksKernel(node, 3) {}

  void Run(const Arguments& a) override {
    walk_.ForGroups([&](int64_t group) {
      Statistics(a, group);
      Normalise(a, group, a.out<float>(1), a.out<float>(2));
    });
  }

 private:
  // In one pass, of the differences to each channel's first element: what is then subtracted is
  // small, and the sums are in double.
  void Statistics(const Arguments& a, int64_t group) const {
    const float* x = a.in<float>(0);
    const __m256 first = _mm256_loadu_ps(x + walk_.Begin(0, group));
    LaneSums sums, squares;
    walk_.ForPixels(group, [&](int64_t at) {
      const __m256 d = _mm256_sub_ps(_mm256_loadu_ps(x + at), first);
      sums.Add(d);
      squares.AddProduct(d, d);
    });
    float firsts[kLanes];
    double sum[kLanes], square[kLanes];
    _mm256_storeu_ps(firsts, first);
    sums.Get(sum);
    squares.Get(square);
    for (int64_t i = 0; i < kLanes; ++i) {
      const double mean = sum[i] / count();
      a.out<float>(1)[group * kLanes + i] =
          static_cast<float>(static_cast<double>(firsts[i]) + mean);
      // Not std::max, which would make 0 of what is no number.
      const double variance = square[i] / count() - mean * mean;
      a.out<float>(2)[group * kLanes + i] = static_cast<float>(variance < 0 ? 0.0 : variance);
    }
  }
};

// x -> what a shard adds to the sums of all: see the reference kernel.
class BatchMomentsBlocksKernel : public BlocksKernel {
 public:
  explicit BatchMomentsBlocksKernel(const NodeSpec& node) : BlocksKernel(node) {}

  void Run(const Arguments& a) override {
    const float* x = a.in<float>(0);
    double* const all = a.out<double>(0);
    const int64_t channels = walk_.groups() * kLanes;
    walk_.ForGroups([&](int64_t group) {
      LaneSums sums, squares;
      walk_.ForPixels(group, [&](int64_t at) {
        const __m256 values = _mm256_loadu_ps(x + at);
        sums.Add(values);
        squares.AddProduct(values, values);
      });
      sums.Get(all + group * kLanes);
      squares.Get(all + channels + group * kLanes);
    });
    all[2 * channels] = count();
  }
};

// (x, mean, variance, dy) -> (what a shard adds to the sums of the gradient by x, dgamma, dbeta).
class BatchNormSumsBlocksKernel : public BlocksKernel {
 public:
  explicit BatchNormSumsBlocksKernel(const NodeSpec& node) : BlocksKernel(node) {}

  void Run(const Arguments& a) override {
    const float *x = a.in<float>(0), *dy = a.in<float>(3);
    double* const all = a.out<double>(0);
    const int64_t channels = walk_.groups() * kLanes;
    walk_.ForGroups([&](int64_t group) {
      const int64_t first = group * kLanes;
      const __m256 mean = _mm256_loadu_ps(a.in<float>(1) + first);
      LaneSums sums, projections;
      walk_.ForPixels(group, [&](int64_t at) {
        const __m256 gradient = _mm256_loadu_ps(dy + at);
        sums.Add(gradient);
        projections.AddProduct(gradient, _mm256_sub_ps(_mm256_loadu_ps(x + at), mean));
      });
      sums.Get(all + first);
      projections.Get(all + channels + first);
      for (int64_t c = first; c < first + kLanes; ++c) {
        const double rstd = 1.0 / std::sqrt(static_cast<double>(a.in<float>(2)[c]) + epsilon_);
        a.out<float>(1)[c] = static_cast<float>(rstd * all[channels + c]);
        a.out<float>(2)[c] = static_cast<float>(all[c]);
      }
    });
    all[2 * channels] = count();
  }
};

// (x, gamma, mean, variance, dy, those sums of all shards) -> dx.
class BatchNormSynchronisedGradBlocksKernel : public BlocksKernel {
 public:
  explicit BatchNormSynchronisedGradBlocksKernel(const NodeSpec& node) : BlocksKernel(node) {}

  // x or dy by dx.
  bool MayOverwrite(int input, int output) const override {
    return (input == 0 || input == 4) && output == 0;
  }

  void Run(const Arguments& a) override {
    const float *x = a.in<float>(0), *dy = a.in<float>(4);
    const double* const all = a.in<double>(5);
    const int64_t channels = walk_.groups() * kLanes;
    float* dx = a.out<float>(0);
    walk_.ForGroups([&](int64_t group) {
      const int64_t first = group * kLanes;
      float slopes[kLanes], alongs[kLanes], offsets[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) {
        const int64_t c = first + i;
        const BatchGradient g(a.in<float>(1)[c], a.in<float>(3)[c], epsilon_, all[c],
                              all[channels + c], all[2 * channels]);
        slopes[i] = g.slope;
        alongs[i] = g.along;
        offsets[i] = g.offset;
      }
      const __m256 mean = _mm256_loadu_ps(a.in<float>(2) + first), slope = _mm256_loadu_ps(slopes),
                   along = _mm256_loadu_ps(alongs), offset = _mm256_loadu_ps(offsets);
      walk_.ForPixels(group, [&](int64_t at) {
        const __m256 rest =
            _mm256_fmadd_ps(along, _mm256_sub_ps(_mm256_loadu_ps(x + at), mean), offset);
        _mm256_storeu_ps(dx + at, _mm256_fmadd_ps(slope, _mm256_loadu_ps(dy + at), rest));
      });
    });
  }
};

class BatchNormGradBlocksKernel : public BlocksKernel {
 public:
  explicit BatchNormGradBlocksKernel(const NodeSpec& node)
      : BlocksKernel(node), relu_(node.attributes.Int("relu") != 0) {}

  // x or dy by dx: the sums of a group come first.
  bool MayOverwrite(int input, int output) const override {
    return (input == 0 || input == 4) && output == 0;
  }

  void Run(const Arguments& a) override { relu_ ? Run<true>(a) : Run<false>(a); }

 private:
  template <bool kRelu>
  void Run(const Arguments& a) const {
    walk_.ForGroups([&](int64_t group) {
      const int64_t c = group * kLanes;
      const float *x = a.in<float>(0), *dy = a.in<float>(4), *gamma = a.in<float>(1) + c,
                  *variance = a.in<float>(3) + c;
      const LaneAffine f(gamma, a.in<float>(kRelu ? 5 : 1) + c, a.in<float>(2) + c, variance,
                         epsilon_);
      const __m256 mean = _mm256_loadu_ps(a.in<float>(2) + c);
      const auto gradient = [&](int64_t at, __m256 value) {
        const __m256 d = _mm256_loadu_ps(dy + at);
        if constexpr (!kRelu) return d;
        return _mm256_and_ps(d, _mm256_cmp_ps(f(value), _mm256_setzero_ps(), _CMP_GT_OQ));
      };
      LaneSums sums, projections;
      walk_.ForPixels(group, [&](int64_t at) {
        const __m256 value = _mm256_loadu_ps(x + at), d = gradient(at, value);
        sums.Add(d);
        projections.AddProduct(d, _mm256_sub_ps(value, mean));
      });
      double sum[kLanes], projection[kLanes];
      sums.Get(sum);
      projections.Get(projection);
      float slopes[kLanes], alongs[kLanes], offsets[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) {
        const BatchGradient g(gamma[i], variance[i], epsilon_, sum[i], projection[i], count());
        a.out<float>(1)[c + i] = static_cast<float>(g.dgamma);
        a.out<float>(2)[c + i] = static_cast<float>(g.dbeta);
        slopes[i] = g.slope;
        alongs[i] = g.along;
        offsets[i] = g.offset;
      }
      const __m256 slope = _mm256_loadu_ps(slopes), along = _mm256_loadu_ps(alongs),
                   offset = _mm256_loadu_ps(offsets);
      float* dx = a.out<float>(0);
      walk_.ForPixels(group, [&](int64_t at) {
        const __m256 value = _mm256_loadu_ps(x + at);
        const __m256 rest = _mm256_fmadd_ps(along, _mm256_sub_ps(value, mean), offset);
        _mm256_storeu_ps(dx + at, _mm256_fmadd_ps(slope, gradient(at, value), rest));
      });
    });
  }

  const bool relu_;
};

}  // namespace

std::unique_ptr<Primitive> BatchMomentsOfBlocks(const NodeSpec& node) {
  if (!FitsWithSums(node) || !HasBlocksOnly(node)) return nullptr;
  return std::make_unique<BatchMomentsBlocksKernel>(node);
}

std::unique_ptr<Primitive> BatchNormSumsOfBlocks(const NodeSpec& node) {
  if (!FitsWithSums(node) || !HasBlocksOnly(node)) return nullptr;
  return std::make_unique<BatchNormSumsBlocksKernel>(node);
}

std::unique_ptr<Primitive> BatchNormSynchronisedGradOfBlocks(const NodeSpec& node) {
  if (!FitsWithSums(node) || !HasBlocksOnly(node)) return nullptr;
  return std::make_unique<BatchNormSynchronisedGradBlocksKernel>(node);
}

std::unique_ptr<Primitive> BatchNormOfBlocks(const NodeSpec& node) {
  if (!LiesInBlocks(node)) return nullptr;
  return std::make_unique<BatchNormBlocksKernel>(node);
}

std::unique_ptr<Primitive> BatchNormAgainOfBlocks(const NodeSpec& node) {
  if (!LiesInBlocks(node)) return nullptr;
  return std::make_unique<BatchNormAgainBlocksKernel>(node);
}

std::unique_ptr<Primitive> BatchNormGradOfBlocks(const NodeSpec& node) {
  if (!LiesInBlocks(node)) return nullptr;
  return std::make_unique<BatchNormGradBlocksKernel>(node);
}

}  // namespace ringmaster::kernels::vector
