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

// Where the samples of a batch go, one after another.
struct Places {
  Places(const SampleFormat& format, tensor::Tensor& inputs, tensor::Tensor& labels)
      : input(static_cast<char*>(inputs.raw())),
        label(labels.data<int32_t>()),
        input_bytes(format.input.bytes()),
        label_count(format.labels()) {}
  void Next() {
    input += input_bytes;
    label += label_count;
  }
  char* input;
  int32_t* label;
  const size_t input_bytes;
  const int64_t label_count;
};

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

absl::Status Dataset::Check(std::span<const uint32_t> rows, const tensor::Tensor& inputs,
                            const tensor::Tensor& labels) const {
  RM_RETURN_IF_ERROR(CheckSpec("inputs", inputs, format_.InputsOf(rows.size())));
  RM_RETURN_IF_ERROR(CheckSpec("labels", labels, format_.LabelsOf(rows.size())));
  const uint32_t samples = size();
  for (const uint32_t row : rows) {
    if (row >= samples) {
      return absl::InvalidArgumentError(
          fmt::format("sample {} of a data set of {} was asked for", row, samples));
    }
  }
  return absl::OkStatus();
}

absl::Status Dataset::Fill(std::span<const uint32_t> rows, tensor::Tensor& inputs,
                           tensor::Tensor& labels) const {
  RM_RETURN_IF_ERROR(Check(rows, inputs, labels));
  Places places(format_, inputs, labels);
  for (const uint32_t row : rows) {
    CopySample(row, places.input, places.label);
    places.Next();
  }
  return absl::OkStatus();
}

absl::Status Dataset::FillForTraining(std::span<const uint32_t> rows,
                                      std::span<const uint64_t> positions, tensor::Tensor& inputs,
                                      tensor::Tensor& labels) const {
  RM_RETURN_IF_ERROR(Check(rows, inputs, labels));
  if (positions.size() != rows.size()) {
    return absl::InvalidArgumentError(
        fmt::format("{} samples have {} positions", rows.size(), positions.size()));
  }
  Places places(format_, inputs, labels);
  for (size_t i = 0; i < rows.size(); ++i) {
    CopyTrainingSample(rows[i], positions[i], places.input, places.label);
    places.Next();
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
