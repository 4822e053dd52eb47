// Dropout with the reference kernel's mask, bit for bit: eight blocks of Philox side by side.
#include <algorithm>

#include "runtime/device/parallel.h"
#include "runtime/kernels/transpose.h"
#include "runtime/kernels/vector/blocks.h"
#include "runtime/kernels/vector/fit.h"
#include "runtime/kernels/vector/lanes.h"
#include "runtime/kernels/vector/parts.h"
#include "runtime/kernels/vector/vector.h"
#include "runtime/tensor/random.h"

#pragma GCC target("avx2,fma")

namespace ringmaster::kernels::vector {
namespace {

using tensor::Philox;

// 32 numbers: those of eight neighbouring blocks, in order.
struct Numbers {
  __m256i all[4];
};

struct Halves {
  __m256i low, high;
};

// The halves of eight products of 32 bits by 32.
inline Halves Multiply(__m256i a, uint32_t by) {
  const __m256i b = _mm256_set1_epi32(static_cast<int>(by));
  const __m256i even = _mm256_mul_epu32(a, b), odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), b);
  constexpr int kOdd = 0xAA;  // which of eight come from the odd products
  return {_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), kOdd),
          _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, kOdd)};
}

inline __m256i Same(uint32_t v) {
  return _mm256_set1_epi32(static_cast<int>(v));
}

inline Numbers Draw(const Philox::Input& input, uint32_t first_block) {
  // So that halves of registers hold blocks in order when words have become blocks.
  __m256i c0 = _mm256_add_epi32(Same(first_block), _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
  __m256i c1 = Same(input.counter[1]), c2 = Same(input.counter[2]), c3 = Same(input.counter[3]);
  uint32_t key0 = input.key[0], key1 = input.key[1];
  for (int round = 0; round < Philox::kRounds; ++round) {
    const Halves p0 = Multiply(c0, Philox::kMultiplier0), p1 = Multiply(c2, Philox::kMultiplier1);
    c0 = _mm256_xor_si256(_mm256_xor_si256(p1.high, c1), Same(key0));
    c1 = p1.low;
    c2 = _mm256_xor_si256(_mm256_xor_si256(p0.high, c3), Same(key1));
    c3 = p0.low;
    key0 += Philox::kWeyl0;
    key1 += Philox::kWeyl1;
  }
  const __m256i low01 = _mm256_unpacklo_epi32(c0, c1), high01 = _mm256_unpackhi_epi32(c0, c1);
  const __m256i low23 = _mm256_unpacklo_epi32(c2, c3), high23 = _mm256_unpackhi_epi32(c2, c3);
  return {{_mm256_unpacklo_epi64(low01, low23), _mm256_unpackhi_epi64(low01, low23),
           _mm256_unpacklo_epi64(high01, high23), _mm256_unpackhi_epi64(high01, high23)}};
}

// What both kernels share: which numbers are a sample's, and which of them keep their element.
class MaskingKernel : public VectorPrimitive {
 public:
  bool MayOverwrite(int /*input*/, int /*output*/) const override { return true; }

 protected:
  explicit MaskingKernel(const NodeSpec& node)
      : op_(static_cast<uint32_t>(node.attributes.Int("random_op"))) {
    const double rate = node.attributes.Real("rate");
    threshold_ = static_cast<uint32_t>(rate * 0x1p32);
    scale_ = static_cast<float>(1.0 / (1.0 - rate));
  }

  static constexpr int64_t kNumbers = 32;  // of one draw
  static constexpr int64_t kBlock = 4;     // numbers, at which a draw may begin

  Philox::Input InputOf(const Arguments& a, int64_t sample) const {
    return Philox::InputOf({.seed = a.context->seed,
                            .domain = tensor::RandomDomain::kDropout,
                            .op = op_,
                            .position = a.context->sample_positions[static_cast<size_t>(sample)]});
  }

  // All bits of the elements that stay, none of the others.
  __m256 Kept(__m256i numbers) const {
    return _mm256_castsi256_ps(
        _mm256_cmpeq_epi32(_mm256_max_epu32(numbers, Same(threshold_)), numbers));
  }

  template <typename Lanes>
  void Mask(const Lanes& lanes, __m256 kept, const float* x, float* y) const {
    lanes.Store(y, _mm256_and_ps(kept, _mm256_mul_ps(_mm256_set1_ps(scale_), lanes.Load(x))));
  }

 private:
  const uint32_t op_;
  uint32_t threshold_ = 0;
  float scale_ = 1;
};

class DropoutKernel : public MaskingKernel {
 public:
  explicit DropoutKernel(const NodeSpec& node)
      : MaskingKernel(node),
        samples_(node.outputs[0].shape.dim(0)),
        per_sample_(node.outputs[0].shape.elements() / samples_) {}

  void Run(const Arguments& a) override {
    const int64_t chunks = PartsOf(per_sample_, kChunk);
    device::ParallelFor(samples_ * chunks, std::min(kChunk, per_sample_), [&](int64_t task) {
      const int64_t sample = task / chunks, begin = task % chunks * kChunk;
      MaskChunk(InputOf(a, sample), begin, std::min(kChunk, per_sample_ - begin),
                a.in<float>(0) + sample * per_sample_ + begin,
                a.out<float>(0) + sample * per_sample_ + begin);
    });
  }

 private:
  static constexpr int64_t kChunk = kNumbers * 64;  // elements of one task

  // `begin` is the first element's place in its sample.
  void MaskChunk(const Philox::Input& input, int64_t begin, int64_t count, const float* x,
                 float* y) const {
    for (int64_t i = 0; i < count; i += kNumbers) {
      const Numbers numbers = Draw(input, static_cast<uint32_t>((begin + i) / kBlock));
      const int64_t left = count - i;
      if (left >= kNumbers) {
        for (int64_t j = 0; j < 4; ++j)
          Mask(Whole(), Kept(numbers.all[j]), x + i + j * kLane, y + i + j * kLane);
        continue;
      }
      for (int64_t j = 0; j * kLane < left; ++j)
        Mask(Part(std::min(kLane, left - j * kLane)), Kept(numbers.all[j]), x + i + j * kLane,
             y + i + j * kLane);
    }
  }

  const int64_t samples_, per_sample_;
};

// Images in blocks of channels. Numbers belong to elements as they lie in rows, so those of eight
// channels' next pixels are drawn in eight rows, and turned.
class DropoutOfBlocksKernel : public MaskingKernel {
 public:
  explicit DropoutOfBlocksKernel(const NodeSpec& node)
      : MaskingKernel(node), walk_(node.outputs[0]) {}

  size_t scratch_bytes() const override {
    const int64_t busy = std::min<int64_t>(tasks(), device::ThreadCount());
    return static_cast<size_t>(busy) * kRows * sizeof(float);
  }

  void Run(const Arguments& a) override {
    ForParts(tasks(), kLane * std::min(kPixels, walk_.plane()), kRows,
             static_cast<float*>(a.scratch), [&](int64_t task, float* rows) {
               const int64_t piece = task % pieces(), sample = task / pieces() / walk_.groups();
               MaskPixels(a, sample, task / pieces() % walk_.groups(), piece * kPixels, rows);
             });
  }

 private:
  static constexpr int64_t kPixels = 512;              // of one task
  static constexpr int64_t kRow = kPixels + kNumbers;  // what is drawn before and behind them
  static constexpr size_t kRows = kLane * kRow;

  int64_t pieces() const { return PartsOf(walk_.plane(), kPixels); }
  int64_t tasks() const { return walk_.batch() * walk_.groups() * pieces(); }

  void MaskPixels(const Arguments& a, int64_t sample, int64_t group, int64_t begin,
                  float* rows) const {
    const Philox::Input input = InputOf(a, sample);
    const int64_t count = std::min(kPixels, walk_.plane() - begin);
    const float* row_of[kLane];
    for (int64_t channel = 0; channel < kLane; ++channel) {
      const int64_t first = (group * kLane + channel) * walk_.plane() + begin;
      float* row = rows + channel * kRow;
      DrawRow(input, first / kBlock, first % kBlock + count, row);
      row_of[channel] = row + first % kBlock;
    }
    const int64_t place = walk_.Begin(sample, group) + begin * walk_.step();
    const float* x = a.in<float>(0) + place;
    float* y = a.out<float>(0) + place;
    for (int64_t pixel = 0; pixel < count; pixel += kLane) {
      EightRows kept;
      for (int64_t channel = 0; channel < kLane; ++channel)
        kept[channel] = _mm256_loadu_ps(row_of[channel] + pixel);
      Transpose(kept);
      for (int64_t i = 0; i < std::min(kLane, count - pixel); ++i) {
        const int64_t at = (pixel + i) * walk_.step();
        Mask(Whole(), kept[i], x + at, y + at);
      }
    }
  }

  // Whole draws, until there are `count` numbers.
  void DrawRow(const Philox::Input& input, int64_t first_block, int64_t count, float* row) const {
    for (int64_t i = 0; i < count; i += kNumbers) {
      const Numbers numbers = Draw(input, static_cast<uint32_t>(first_block + i / kBlock));
      for (int64_t j = 0; j < 4; ++j) _mm256_storeu_ps(row + i + j * kLane, Kept(numbers.all[j]));
    }
  }

  const LaneWalk walk_;
};

}  // namespace

std::unique_ptr<Primitive> Dropout(const NodeSpec& node) {
  if (!FitsAlike(node)) return nullptr;
  if (IsRowMajor(node)) return std::make_unique<DropoutKernel>(node);
  return std::make_unique<DropoutOfBlocksKernel>(node);
}

}  // namespace ringmaster::kernels::vector
