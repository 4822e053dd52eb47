// Causal self attention, one head of one sample at a time. The forward pass keeps only the
// logarithm of each row's sum of exponentials; the backward pass makes the probabilities again from
// it, as FlashAttention does (Dao et al., 2022), so memory grows with T and not with T * T.
#include <algorithm>
#include <cmath>

#include "runtime/kernels/reference/common.h"
#include "runtime/kernels/reference/reference.h"

namespace ringmaster::kernels::reference {
namespace {

template <typename T>
T Dot(const T* a, const T* b, int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// y += factor * x
template <typename T>
void AddScaled(T factor, const T* x, T* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

template <typename T>
class AttentionBase : public ReferencePrimitive {
 public:
  // A row of T scores per head of each sample.
  size_t scratch_bytes() const override {
    return static_cast<size_t>(batch_ * heads_ * time_) * sizeof(T);
  }

 protected:
  explicit AttentionBase(const NodeSpec& node)
      : batch_(InShape(node, 0).dim(0)),
        time_(InShape(node, 0).dim(1)),
        features_(InShape(node, 0).dim(2) / 3),
        heads_(node.attributes.Int("heads")),
        width_(features_ / heads_),
        scale_(static_cast<T>(1.0 / std::sqrt(static_cast<double>(width_)))) {}

  // Calls body(sample, head, that head's row of scratch) for each.
  template <typename Body>
  void ForHeads(const Arguments& a, const Body& body) const {
    ParallelFor(batch_ * heads_, time_ * time_ * width_, [&](int64_t i) {
      body(i / heads_, i % heads_, static_cast<T*>(a.scratch) + i * time_);
    });
  }

  // Where time t of a head's queries (part 0), keys (1) or values (2) begins in [B, T, 3 D].
  int64_t QkvAt(int64_t b, int64_t h, int64_t t, int64_t part) const {
    return (b * time_ + t) * 3 * features_ + part * features_ + h * width_;
  }
  // The same in [B, T, D].
  int64_t OutAt(int64_t b, int64_t h, int64_t t) const {
    return (b * time_ + t) * features_ + h * width_;
  }
  int64_t LogSumAt(int64_t b, int64_t h, int64_t t) const { return (b * heads_ + h) * time_ + t; }

  int64_t batch_, time_, features_, heads_, width_;
  T scale_;
};

// qkv -> (out, log of the sum of exponentials).
template <typename T>
class AttentionKernel : public AttentionBase<T> {
 public:
  explicit AttentionKernel(const NodeSpec& node) : AttentionBase<T>(node) {}

  void Run(const Arguments& a) override {
    this->ForHeads(a, [&](int64_t b, int64_t h, T* scores) {
      for (int64_t t = 0; t < this->time_; ++t) RunRow(a, b, h, t, scores);
    });
  }

 private:
  void RunRow(const Arguments& a, int64_t b, int64_t h, int64_t t, T* scores) const {
    const T* qkv = a.in<T>(0);
    T* out = a.out<T>(0) + this->OutAt(b, h, t);
    const T* query = qkv + this->QkvAt(b, h, t, 0);
    for (int64_t s = 0; s <= t; ++s) {
      scores[s] = this->scale_ * Dot(query, qkv + this->QkvAt(b, h, s, 1), this->width_);
    }
    const T largest = *std::max_element(scores, scores + t + 1);
    T sum = 0;
    for (int64_t s = 0; s <= t; ++s) sum += scores[s] = std::exp(scores[s] - largest);
    std::fill_n(out, this->width_, T(0));
    for (int64_t s = 0; s <= t; ++s) {
      AddScaled(scores[s] / sum, qkv + this->QkvAt(b, h, s, 2), out, this->width_);
    }
    a.out<T>(1)[this->LogSumAt(b, h, t)] = largest + std::log(sum);
  }
};

// (qkv, out, log sum, dout) -> dqkv.
template <typename T>
class AttentionGradKernel : public AttentionBase<T> {
 public:
  explicit AttentionGradKernel(const NodeSpec& node) : AttentionBase<T>(node) {}

  void Run(const Arguments& a) override {
    this->ForHeads(a, [&](int64_t b, int64_t h, T* probabilities) {
      for (int64_t t = 0; t < this->time_; ++t) {
        for (int64_t part = 0; part < 3; ++part) {
          std::fill_n(a.out<T>(0) + this->QkvAt(b, h, t, part), this->width_, T(0));
        }
      }
      for (int64_t t = 0; t < this->time_; ++t) RunRow(a, b, h, t, probabilities);
    });
  }

 private:
  // With p the probabilities of row t: dv += p dout; ds = p (dout . v - dout . out); dq += ds k; dk
  // += ds q.
  void RunRow(const Arguments& a, int64_t b, int64_t h, int64_t t, T* p) const {
    const T* qkv = a.in<T>(0);
    T* dqkv = a.out<T>(0);
    const int64_t width = this->width_, at = this->OutAt(b, h, t), query = this->QkvAt(b, h, t, 0);
    const T* dout = a.in<T>(3) + at;
    const T log_sum = a.in<T>(2)[this->LogSumAt(b, h, t)];
    const T mean = Dot(dout, a.in<T>(1) + at, width);
    for (int64_t s = 0; s <= t; ++s) {
      p[s] =
          std::exp(this->scale_ * Dot(qkv + query, qkv + this->QkvAt(b, h, s, 1), width) - log_sum);
    }
    for (int64_t s = 0; s <= t; ++s) {
      const int64_t key = this->QkvAt(b, h, s, 1), value = this->QkvAt(b, h, s, 2);
      const T ds = this->scale_ * p[s] * (Dot(dout, qkv + value, width) - mean);
      AddScaled(p[s], dout, dqkv + value, width);
      AddScaled(ds, qkv + key, dqkv + query, width);
      AddScaled(ds, qkv + query, dqkv + key, width);
    }
  }
};

}  // namespace

std::unique_ptr<Primitive> CausalAttention(const NodeSpec& node) {
  return MakeReal<AttentionKernel>(node);
}
std::unique_ptr<Primitive> CausalAttentionGrad(const NodeSpec& node) {
  return MakeReal<AttentionGradKernel>(node);
}

}  // namespace ringmaster::kernels::reference
