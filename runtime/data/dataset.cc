#include "runtime/data/dataset.h"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/data/csv_dataset.h"
#include "runtime/data/text_dataset.h"

namespace ringmaster::data {
namespace {

tensor::Shape Batched(size_t rows, const tensor::Shape& sample) {
  // In an array: every step asks.
  std::array<int64_t, tensor::Shape::kMaxRank> dims{static_cast<int64_t>(rows)};
  std::ranges::copy(sample.dims(), dims.begin() + 1);
  return tensor::Shape(std::span(dims).first(static_cast<size_t>(sample.rank()) + 1));
}

absl::Status CheckSpec(const char* what, const tensor::Tensor& tensor,
                       const tensor::ValueSpec& wanted) {
  if (tensor.spec() == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{} are {}, the samples need {}", what,
                                                tensor.spec().ToString(), wanted.ToString()));
}

class FunctionDataset : public Dataset {
 public:
  FunctionDataset(SampleFormat format, uint32_t size, CopyFunction copy)
      : Dataset(std::move(format)), size_(size), copy_(std::move(copy)) {}
  uint32_t size() const override { return size_; }

 private:
  void CopySample(uint32_t row, void* input, int32_t* labels) const override {
    copy_(row, input, labels);
  }

  const uint32_t size_;
  const CopyFunction copy_;
};

}  // namespace

tensor::ValueSpec SampleFormat::InputsOf(size_t rows) const {
  return {Batched(rows, input.shape), input.dtype};
}

tensor::ValueSpec SampleFormat::LabelsOf(size_t rows) const {
  return {Batched(rows, label_shape), tensor::DType::kI32};
}

absl::Status Dataset::Fill(std::span<const uint32_t> rows, tensor::Tensor& inputs,
                           tensor::Tensor& labels) const {
  RM_RETURN_IF_ERROR(CheckSpec("inputs", inputs, format_.InputsOf(rows.size())));
  RM_RETURN_IF_ERROR(CheckSpec("labels", labels, format_.LabelsOf(rows.size())));
  const uint32_t samples = size();
  for (const uint32_t row : rows) {
    if (row >= samples) {
      return absl::InvalidArgumentError(
          fmt::format("sample {} of a data set of {} was asked for", row, samples));
    }
  }
  char* input = static_cast<char*>(inputs.raw());
  int32_t* label = labels.data<int32_t>();
  const size_t input_bytes = format_.input.bytes();
  const int64_t label_count = format_.labels();
  for (const uint32_t row : rows) {
    CopySample(row, input, label);
    input += input_bytes;
    label += label_count;
  }
  return absl::OkStatus();
}

std::unique_ptr<const Dataset> MakeDataset(SampleFormat format, uint32_t size, CopyFunction copy) {
  return std::make_unique<FunctionDataset>(std::move(format), size, std::move(copy));
}

absl::StatusOr<Splits> Load(const training::v1alpha1::Data& config, const std::string& workspace) {
  if (config.csv) return LoadCsv(*config.csv, workspace);
  if (config.text) return LoadText(*config.text, workspace);
  return absl::InvalidArgumentError(
      "data: name one of csv and text; custom samples are made by a trainer of your own");
}

}  // namespace ringmaster::data
