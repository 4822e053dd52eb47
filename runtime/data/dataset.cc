#include "runtime/data/dataset.h"

#include <vector>

#include <fmt/format.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/data/csv_dataset.h"
#include "runtime/data/text_dataset.h"

namespace ringmaster::data {
namespace {

tensor::Shape Batched(size_t rows, const tensor::Shape& sample) {
  std::vector<int64_t> dims{static_cast<int64_t>(rows)};
  dims.insert(dims.end(), sample.dims().begin(), sample.dims().end());
  return tensor::Shape(dims);
}

absl::Status CheckSpec(const char* what, const tensor::Tensor& tensor,
                       const tensor::ValueSpec& wanted) {
  if (tensor.spec() == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("{} are {}, the samples need {}", what,
                                                tensor.spec().ToString(), wanted.ToString()));
}

}  // namespace

absl::Status Dataset::Fill(std::span<const uint32_t> rows, tensor::Tensor& inputs,
                           tensor::Tensor& labels) const {
  const tensor::ValueSpec input_spec{Batched(rows.size(), format_.input.shape),
                                     format_.input.dtype};
  const tensor::ValueSpec label_spec{Batched(rows.size(), format_.label_shape),
                                     tensor::DType::kI32};
  RM_RETURN_IF_ERROR(CheckSpec("inputs", inputs, input_spec));
  RM_RETURN_IF_ERROR(CheckSpec("labels", labels, label_spec));
  for (const uint32_t row : rows) {
    if (row >= size()) {
      return absl::InvalidArgumentError(
          fmt::format("sample {} of a data set of {} was asked for", row, size()));
    }
  }
  char* input = static_cast<char*>(inputs.raw());
  int32_t* label = labels.data<int32_t>();
  for (const uint32_t row : rows) {
    CopySample(row, input, label);
    input += format_.input.bytes();
    label += format_.labels();
  }
  return absl::OkStatus();
}

absl::StatusOr<Splits> Load(const training::v1alpha1::Data& config, const std::string& workspace) {
  if (config.csv) return LoadCsv(*config.csv, workspace);
  if (config.text) return LoadText(*config.text, workspace);
  return absl::InvalidArgumentError("data: name one of csv and text");
}

}  // namespace ringmaster::data
