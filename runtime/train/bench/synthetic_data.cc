#include "runtime/train/bench/synthetic_data.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/tensor/random.h"

namespace ringmaster::train::bench {
namespace {

constexpr uint64_t kSeed = 1;

std::vector<int64_t> Batched(uint32_t samples, const tensor::Shape& sample) {
  std::vector<int64_t> dims{samples};
  dims.insert(dims.end(), sample.dims().begin(), sample.dims().end());
  return dims;
}

class SyntheticData final : public data::Dataset {
 public:
  SyntheticData(const data::SampleFormat& format, uint32_t distinct, uint32_t samples)
      : Dataset(format),
        distinct_(distinct),
        samples_(samples),
        input_bytes_(format.input.bytes()),
        label_count_(static_cast<size_t>(format.labels())) {}

  uint32_t size() const override { return samples_; }

 private:
  struct Drawn {
    tensor::Tensor inputs;
    std::vector<int32_t> labels;
  };

  Drawn Draw() const {
    Drawn drawn{{tensor::Shape(Batched(distinct_, format().input.shape)), format().input.dtype},
                std::vector<int32_t>(distinct_ * label_count_)};
    if (drawn.inputs.dtype() == tensor::DType::kI32) {
      DrawClasses("inputs", drawn.inputs.span<int32_t>());
    } else {
      tensor::FillUniform(drawn.inputs, -1, 1, kSeed, "inputs");
    }
    DrawClasses("labels", drawn.labels);
    return drawn;
  }

  void DrawClasses(std::string_view name, std::span<int32_t> out) const {
    tensor::RandomStream draw({.seed = kSeed, .op = tensor::StreamOf(name)});
    for (int32_t& value : out)
      value = static_cast<int32_t>(draw.Below(static_cast<uint32_t>(format().classes)));
  }

  void CopySample(uint32_t row, void* input, int32_t* labels) const override {
    std::call_once(once_, [this] { drawn_ = Draw(); });
    const size_t place = row % distinct_;
    std::memcpy(input, static_cast<const char*>(drawn_.inputs.raw()) + place * input_bytes_,
                input_bytes_);
    std::copy_n(drawn_.labels.data() + place * label_count_, label_count_, labels);
  }

  const uint32_t distinct_;
  const uint32_t samples_;
  const size_t input_bytes_, label_count_;  // of a sample
  mutable std::once_flag once_;
  mutable Drawn drawn_;  // by the first call of CopySample
};

}  // namespace

data::Splits MakeSyntheticData(const data::SampleFormat& format, uint32_t distinct,
                               uint32_t samples) {
  return {.train = std::make_unique<SyntheticData>(format, distinct, samples),
          .held_out = std::make_unique<SyntheticData>(format, 1, 0),
          .fingerprint = "synthetic"};
}

size_t SyntheticBytes(const data::SampleFormat& format, uint32_t distinct) {
  return distinct * (format.input.bytes() + sizeof(int32_t) * static_cast<size_t>(format.labels()));
}

}  // namespace ringmaster::train::bench
