// Causal self attention, one head of one sample at a time, made of products in registers
// (product.h). Queries come in blocks, whose scores stay in the second cache; the backward pass
// makes the probabilities again from each row's logarithm of the sum of exponentials, as
// FlashAttention does (Dao et al.: "FlashAttention: fast and memory-efficient exact attention with
// IO-awareness", 2022). Of keys that a block cannot see, whole tiles are left out.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/kernels/vector/vector.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

constexpr int64_t kBlock = 48;  // queries: whole tiles

int64_t Padded(int64_t n) {
  return (n + kTileColumns - 1) / kTileColumns * kTileColumns;
}

// Gives the parts of a thread's scratch memory away, one after another.
class Carver {
 public:
  explicit Carver(float* memory) : next_(memory) {}
  float* Take(int64_t floats) {
    float* const part = next_;
    next_ += floats;
    return part;
  }

 private:
  float* next_;
};

// n rows of `width` floats, `from_stride` and `to_stride` apart, each times `factor`.
void CopyRows(int64_t n, int64_t width, float factor, const float* from, int64_t from_stride,
              float* to, int64_t to_stride) {
  for (int64_t r = 0; r < n; ++r) {
    const float* __restrict source = from + r * from_stride;
    float* __restrict target = to + r * to_stride;
    for (int64_t i = 0; i < width; ++i) target[i] = factor * source[i];
  }
}

// What both directions need. Keys and values of a head, and what is made of them, are matrices of
// `time` rows and `width` columns; those in panels are as product.h packs them, a panel after
// another.
class HeadKernel : public VectorPrimitive {
 protected:
  explicit HeadKernel(const NodeSpec& node)
      : batch_(node.inputs[0].shape.dim(0)),
        time_(node.inputs[0].shape.dim(1)),
        features_(node.inputs[0].shape.dim(2) / 3),
        heads_(node.attributes.Int("heads")),
        width_(features_ / heads_),
        padded_time_(Padded(time_)),
        padded_width_(Padded(width_)),
        scale_(static_cast<float>(1.0 / std::sqrt(static_cast<double>(width_)))) {}

  // A head of a sample.
  struct Head {
    const float *queries, *keys, *values;  // in [B, T, 3 D], rows qkv_stride() apart
    int64_t out;                           // where it begins in [B, T, D], rows features_ apart
    int64_t log_sums;                      // where it begins in [B, heads, T]
  };
  Head HeadAt(const float* qkv, int64_t i) const {
    const int64_t b = i / heads_, h = i % heads_;
    const float* const queries = qkv + QkvAt(i);
    return {.queries = queries,
            .keys = queries + features_,
            .values = queries + 2 * features_,
            .out = b * time_ * features_ + h * width_,
            .log_sums = i * time_};
  }
  int64_t QkvAt(int64_t i) const { return i / heads_ * time_ * qkv_stride() + i % heads_ * width_; }
  int64_t qkv_stride() const { return 3 * features_; }

  // Calls body(head's number, scratch) for all heads of all samples.
  template <typename Body>
  void ForHeads(const Arguments& a, size_t floats, const Body& body) const {
    ForParts(batch_ * heads_, time_ * time_ * width_ / 4, floats, static_cast<float*>(a.scratch),
             body);
  }
  // Calls body(first query, number of queries) for blocks of them. They see keys 0 to the last
  // query's own.
  template <typename Body>
  void ForBlocks(const Body& body) const {
    for (int64_t begin = 0; begin < time_; begin += kBlock)
      body(begin, std::min(kBlock, time_ - begin));
  }

  // n rows, `stride` apart, as the B of a product over the features: B = rows transposed.
  void PackTransposed(int64_t n, const float* rows, int64_t stride, float* panels) const {
    for (int64_t first = 0; first < n; first += kTileColumns) {
      Pack(width_, std::min(kTileColumns, n - first), {1, stride}, rows + first * stride,
           panels + first * width_);
    }
  }
  // n rows as the B of a product over the rows.
  void PackRows(int64_t n, const float* rows, int64_t stride, float* panels) const {
    for (int64_t first = 0; first < width_; first += kTileColumns) {
      Pack(n, std::min(kTileColumns, width_ - first), {stride, 1}, rows + first,
           panels + first * n);
    }
  }

  // A (n rows of features) times `seen` transposed rows: n x Padded(seen), rows padded_time_ apart.
  void TimesTransposed(int64_t n, const float* a, int64_t stride, const float* panels, int64_t seen,
                       float* to) const {
    const Product product{.m = n, .k = width_, .a = {stride, 1}};
    for (int64_t first = 0; first < seen; first += kTileColumns)
      product.RunPacked(a, panels + first * width_, to + first, padded_time_, false);
  }
  // The product of A (m x k) and rows packed as they are, of which `packed` lie in a panel: m x
  // padded_width_.
  void TimesRows(const Product& product, const float* a, const float* panels, int64_t packed,
                 float* to, bool accumulate) const {
    for (int64_t first = 0; first < width_; first += kTileColumns)
      product.RunPacked(a, panels + first * packed, to + first, padded_width_, accumulate);
  }

  const int64_t batch_, time_, features_, heads_, width_;
  const int64_t padded_time_, padded_width_;  // whole tiles
  const float scale_;
};

// qkv -> (out, logarithm of the sum of exponentials).
class AttentionKernel : public HeadKernel {
 public:
  explicit AttentionKernel(const NodeSpec& node) : HeadKernel(node) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(device::ThreadCount()) * floats() * sizeof(float);
  }

  void Run(const Arguments& a) override {
    ForHeads(a, floats(), [&](int64_t i, float* scratch) {
      const Head head = HeadAt(a.in<float>(0), i);
      Carver carver(scratch);
      float* keys = carver.Take(padded_time_ * width_);
      float* values = carver.Take(time_ * padded_width_);
      float* queries = carver.Take(kBlock * width_);
      float* scores = carver.Take(kBlock * padded_time_);
      float* result = carver.Take(kBlock * padded_width_);
      PackTransposed(time_, head.keys, qkv_stride(), keys);
      PackRows(time_, head.values, qkv_stride(), values);
      ForBlocks([&](int64_t begin, int64_t n) {
        const int64_t seen = begin + n;
        CopyRows(n, width_, scale_, head.queries + begin * qkv_stride(), qkv_stride(), queries,
                 width_);
        TimesTransposed(n, queries, width_, keys, seen, scores);
        float* log_sums = a.out<float>(1) + head.log_sums + begin;
        for (int64_t r = 0; r < n; ++r)
          log_sums[r] = Softmax(scores + r * padded_time_, begin + r + 1, seen);
        TimesRows({.m = n, .k = seen, .a = {padded_time_, 1}}, scores, values, time_, result,
                  false);
        CopyRows(n, width_, 1, result, padded_width_,
                 a.out<float>(0) + head.out + begin * features_, features_);
      });
    });
  }

 private:
  size_t floats() const {
    return static_cast<size_t>(padded_time_ * width_ + time_ * padded_width_ +
                               kBlock * (width_ + padded_time_ + padded_width_));
  }

  // Makes probabilities of the first `own` scores, and zeros of those up to `seen`. Returns the
  // logarithm of the sum of their exponentials.
  static float Softmax(float* scores, int64_t own, int64_t seen) {
    const float largest = Largest(scores, own);
    const __m256 shift = _mm256_set1_ps(largest);
    const __m256 nothing = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
    Sum sum;
    ForLanes(own, [&](auto lanes, int64_t s) {
      const __m256 e = Exp(_mm256_sub_ps(lanes.LoadOr(scores + s, nothing), shift));
      sum.Add(e);
      lanes.Store(scores + s, e);
    });
    const double total = sum.Total();
    const __m256 share = _mm256_set1_ps(static_cast<float>(1.0 / total));
    ForLanes(own, [&](auto lanes, int64_t s) {
      lanes.Store(scores + s, _mm256_mul_ps(lanes.Load(scores + s), share));
    });
    std::fill(scores + own, scores + seen, 0.0F);
    return static_cast<float>(static_cast<double>(largest) + std::log(total));
  }
};

// (qkv, out, logarithm of the sum, dout) -> dqkv.
class AttentionGradKernel : public HeadKernel {
 public:
  explicit AttentionGradKernel(const NodeSpec& node) : HeadKernel(node) {}

  size_t scratch_bytes() const override {
    return static_cast<size_t>(device::ThreadCount()) * floats() * sizeof(float);
  }

  // With P the probabilities: dV = P' dout; dS = P (dout V' - dout . out) scale; dQ = dS K; dK =
  // dS' Q.
  void Run(const Arguments& a) override {
    ForHeads(a, floats(), [&](int64_t i, float* scratch) {
      const Head head = HeadAt(a.in<float>(0), i);
      Memory m = Carve(scratch);
      PackTransposed(time_, head.keys, qkv_stride(), m.keys_transposed);
      PackTransposed(time_, head.values, qkv_stride(), m.values_transposed);
      PackRows(time_, head.keys, qkv_stride(), m.keys);
      std::fill_n(m.dkeys, time_ * padded_width_, 0.0F);
      std::fill_n(m.dvalues, time_ * padded_width_, 0.0F);
      float* dqkv = a.out<float>(0) + QkvAt(i);
      ForBlocks([&](int64_t begin, int64_t n) { RunBlock(a, head, begin, n, m, dqkv); });
      CopyRows(time_, width_, 1, m.dkeys, padded_width_, dqkv + features_, qkv_stride());
      CopyRows(time_, width_, 1, m.dvalues, padded_width_, dqkv + 2 * features_, qkv_stride());
    });
  }

 private:
  struct Memory {
    float *keys_transposed, *values_transposed, *keys;  // of the head, packed
    float *dkeys, *dvalues;                             // rows, padded_width_ apart
    // Of a block.
    float* queries;  // dense, times the scale
    float *packed_queries, *packed_dout;
    float *probabilities, *dscores;  // rows, padded_time_ apart
    float* dqueries;                 // rows, padded_width_ apart
  };

  size_t floats() const {
    return static_cast<size_t>(2 * padded_time_ * width_ + 3 * time_ * padded_width_ +
                               kBlock * (width_ + 3 * padded_width_ + 2 * padded_time_));
  }
  Memory Carve(float* scratch) const {
    Carver carver(scratch);
    Memory m{};
    m.keys_transposed = carver.Take(padded_time_ * width_);
    m.values_transposed = carver.Take(padded_time_ * width_);
    m.keys = carver.Take(time_ * padded_width_);
    m.dkeys = carver.Take(time_ * padded_width_);
    m.dvalues = carver.Take(time_ * padded_width_);
    m.queries = carver.Take(kBlock * width_);
    m.packed_queries = carver.Take(kBlock * padded_width_);
    m.packed_dout = carver.Take(kBlock * padded_width_);
    m.probabilities = carver.Take(kBlock * padded_time_);
    m.dscores = carver.Take(kBlock * padded_time_);
    m.dqueries = carver.Take(kBlock * padded_width_);
    return m;
  }

  void RunBlock(const Arguments& a, const Head& head, int64_t begin, int64_t n, const Memory& m,
                float* dqkv) const {
    const int64_t seen = begin + n, stride = qkv_stride();
    const float* queries = head.queries + begin * stride;
    const float* out = a.in<float>(1) + head.out + begin * features_;
    const float* log_sums = a.in<float>(2) + head.log_sums + begin;
    const float* dout = a.in<float>(3) + head.out + begin * features_;
    CopyRows(n, width_, scale_, queries, stride, m.queries, width_);
    PackRows(n, queries, stride, m.packed_queries);
    PackRows(n, dout, features_, m.packed_dout);
    TimesTransposed(n, m.queries, width_, m.keys_transposed, seen, m.probabilities);
    TimesTransposed(n, dout, features_, m.values_transposed, seen, m.dscores);
    for (int64_t r = 0; r < n; ++r) {
      const float mean = Dot(out + r * features_, dout + r * features_);
      Backward(begin + r + 1, seen, log_sums[r], mean, m.probabilities + r * padded_time_,
               m.dscores + r * padded_time_);
    }
    const Product down{.m = seen, .k = n, .a = {1, padded_time_}};
    TimesRows(down, m.probabilities, m.packed_dout, n, m.dvalues, true);
    TimesRows(down, m.dscores, m.packed_queries, n, m.dkeys, true);
    TimesRows({.m = n, .k = seen, .a = {padded_time_, 1}}, m.dscores, m.keys, time_, m.dqueries,
              false);
    CopyRows(n, width_, 1, m.dqueries, padded_width_, dqkv + begin * stride, stride);
  }

  float Dot(const float* x, const float* y) const {
    Sum sum;
    ForLanes(width_,
             [&](auto lanes, int64_t i) { sum.AddProduct(lanes.Load(x + i), lanes.Load(y + i)); });
    return static_cast<float>(sum.Total());
  }

  // Of one row: scores to probabilities, and their gradients to those of the scores before the
  // scale; zeros behind the first `own`, up to `seen`.
  void Backward(int64_t own, int64_t seen, float log_sum, float mean, float* probabilities,
                float* dscores) const {
    const __m256 shift = _mm256_set1_ps(log_sum), offset = _mm256_set1_ps(mean),
                 scale = _mm256_set1_ps(scale_);
    ForLanes(own, [&](auto lanes, int64_t s) {
      const __m256 p = Exp(_mm256_sub_ps(lanes.Load(probabilities + s), shift));
      const __m256 d = _mm256_sub_ps(lanes.Load(dscores + s), offset);
      lanes.Store(probabilities + s, p);
      lanes.Store(dscores + s, _mm256_mul_ps(_mm256_mul_ps(p, d), scale));
    });
    std::fill(probabilities + own, probabilities + seen, 0.0F);
    std::fill(dscores + own, dscores + seen, 0.0F);
  }
};

}  // namespace

std::unique_ptr<Primitive> CausalAttention(const NodeSpec& node) {
  return Fits(node) ? std::make_unique<AttentionKernel>(node) : nullptr;
}

std::unique_ptr<Primitive> CausalAttentionGrad(const NodeSpec& node) {
  return Fits(node) ? std::make_unique<AttentionGradKernel>(node) : nullptr;
}

}  // namespace ringmaster::kernels::vector
