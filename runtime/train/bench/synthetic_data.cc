#include "runtime/train/bench/synthetic_data.h"

#include <algorithm>
#include <cstring>
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
        label_count_(static_cast<size_t>(format.labels())),
        inputs_(tensor::Shape(Batched(distinct, format.input.shape)), format.input.dtype),
        labels_(static_cast<size_t>(distinct) * static_cast<size_t>(format.labels())) {
    if (inputs_.dtype() == tensor::DType::kI32) {
      DrawClasses("inputs", inputs_.span<int32_t>());
    } else {
      tensor::FillUniform(inputs_, -1, 1, kSeed, "inputs");
    }
    DrawClasses("labels", labels_);
  }

  uint32_t size() const override { return samples_; }

 private:
  void DrawClasses(std::string_view name, std::span<int32_t> out) const {
    tensor::RandomStream draw({.seed = kSeed, .op = tensor::StreamOf(name)});
    for (int32_t& value : out)
      value = static_cast<int32_t>(draw.Below(static_cast<uint32_t>(format().classes)));
  }

  void CopySample(uint32_t row, void* input, int32_t* labels) const override {
    const size_t place = row % distinct_;
    std::memcpy(input, static_cast<const char*>(inputs_.raw()) + place * input_bytes_,
                input_bytes_);
    std::copy_n(labels_.data() + place * label_count_, label_count_, labels);
  }

  const uint32_t distinct_;
  const uint32_t samples_;
  const size_t input_bytes_, label_count_;  // of a sample
  tensor::Tensor inputs_;
  std::vector<int32_t> labels_;
};

}  // namespace

data::Splits MakeSyntheticData(const data::SampleFormat& format, uint32_t distinct,
                               uint32_t samples) {
  return {.train = std::make_unique<SyntheticData>(format, distinct, samples),
          .held_out = std::make_unique<SyntheticData>(format, 1, 0),
          .fingerprint = "synthetic"};
}

}  // namespace ringmaster::train::bench
