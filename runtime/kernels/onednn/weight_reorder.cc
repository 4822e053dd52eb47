#include "runtime/kernels/onednn/weight_reorder.h"

#include "runtime/device/parallel.h"
#include "runtime/device/vectors.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "runtime/kernels/transpose.h"

namespace ringmaster::kernels::onednn {
namespace {

using dnnl::memory;

constexpr int64_t kBlock = 8;  // channels

#pragma GCC push_options
#pragma GCC target("avx2,fma")

// One block of 8 x 8 channels: in rows, 8 runs of 8 * taps floats, `stride` apart, each by input
// channel and tap; as a block, by tap, input and output.
void RowsToInputsOutputs(const float* rows, int64_t stride, int64_t taps, float* block) {
  for (int64_t first = 0; first < kBlock * taps; first += kBlock) {
    EightRows v;
    for (size_t o = 0; o < kBlock; ++o)
      v[o] = _mm256_loadu_ps(rows + static_cast<int64_t>(o) * stride + first);
    Transpose(v);
    for (size_t i = 0; i < kBlock; ++i) {
      const int64_t at = first + static_cast<int64_t>(i), input = at / taps, tap = at % taps;
      _mm256_storeu_ps(block + (tap * kBlock + input) * kBlock, v[i]);
    }
  }
}

void InputsOutputsToRows(const float* block, int64_t stride, int64_t taps, float* rows) {
  for (int64_t first = 0; first < kBlock * taps; first += kBlock) {
    EightRows v;
    for (size_t i = 0; i < kBlock; ++i) {
      const int64_t at = first + static_cast<int64_t>(i), input = at / taps, tap = at % taps;
      v[i] = _mm256_loadu_ps(block + (tap * kBlock + input) * kBlock);
    }
    Transpose(v);
    for (size_t o = 0; o < kBlock; ++o)
      _mm256_storeu_ps(rows + static_cast<int64_t>(o) * stride + first, v[o]);
  }
}

// As a block by tap, output and input.
void RowsToOutputsInputs(const float* rows, int64_t stride, int64_t taps, float* block) {
  const __m256i inputs = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                            _mm256_set1_epi32(static_cast<int>(taps)));
  for (int64_t o = 0; o < kBlock; ++o) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      const float* from = rows + o * stride + tap;
      const __m256 v =
          taps == 1 ? _mm256_loadu_ps(from) : _mm256_i32gather_ps(from, inputs, sizeof(float));
      _mm256_storeu_ps(block + (tap * kBlock + o) * kBlock, v);
    }
  }
}

#pragma GCC pop_options

}  // namespace

WeightReorder::WeightReorder(Kind kind, const memory::dims& dims)
    : kind_(kind),
      outputs_(dims[0] / kBlock),
      inputs_(dims[1] / kBlock),
      taps_(dims[2] * dims[3]) {}

std::optional<WeightReorder> WeightReorder::Between(const memory::desc& from,
                                                    const memory::desc& to) {
  if (!device::MayUse(device::Vectors::kAvx2) || from.data_type() != memory::data_type::f32)
    return std::nullopt;
  const memory::dims dims = from.dims();
  if (dims.size() != 4 || dims[0] % kBlock != 0 || dims[1] % kBlock != 0) return std::nullopt;
  const auto in = [&](memory::format_tag tag) {
    return memory::desc(dims, memory::data_type::f32, tag);
  };
  const memory::desc rows = in(memory::format_tag::oihw),
                     inputs_outputs = in(memory::format_tag::OIhw8i8o);
  if (from == rows && to == inputs_outputs) return WeightReorder(Kind::kRowsToInputsOutputs, dims);
  if (from == inputs_outputs && to == rows) return WeightReorder(Kind::kInputsOutputsToRows, dims);
  if (from == rows && to == in(memory::format_tag::OIhw8o8i))
    return WeightReorder(Kind::kRowsToOutputsInputs, dims);
  return std::nullopt;
}

void WeightReorder::Run(const float* from, float* to) const {
  const int64_t stride = inputs_ * kBlock * taps_, size = kBlock * kBlock * taps_;
  device::ParallelFor(outputs_ * inputs_, size, [&](int64_t task) {
    const int64_t at = (task / inputs_ * stride + task % inputs_ * taps_) * kBlock;
    switch (kind_) {
      case Kind::kRowsToInputsOutputs:
        return RowsToInputsOutputs(from + at, stride, taps_, to + task * size);
      case Kind::kInputsOutputsToRows:
        return InputsOutputsToRows(from + task * size, stride, taps_, to + at);
      case Kind::kRowsToOutputsInputs:
        return RowsToOutputsInputs(from + at, stride, taps_, to + task * size);
    }
  });
}

}  // namespace ringmaster::kernels::onednn

#else

namespace ringmaster::kernels::onednn {

std::optional<WeightReorder> WeightReorder::Between(const dnnl::memory::desc&,
                                                    const dnnl::memory::desc&) {
  return std::nullopt;
}

void WeightReorder::Run(const float*, float*) const {}

}  // namespace ringmaster::kernels::onednn

#endif
