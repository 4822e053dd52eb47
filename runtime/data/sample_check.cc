#include "runtime/data/sample_check.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>

#include <fmt/format.h>

#include "common/sha256.h"
#include "common/status.h"
#include "runtime/tensor/tensor.h"

namespace ringmaster::data {
namespace {

class NoSamples : public Dataset {
 public:
  using Dataset::Dataset;
  uint32_t size() const override { return 0; }

 private:
  void CopySample(uint32_t /*row*/, void* /*input*/, int32_t* /*labels*/) const override {}
};

// A batch has one axis more.
absl::Status CheckShape(const char* what, const tensor::Shape& shape) {
  constexpr int64_t kMostElements = int64_t{1} << 32;
  int64_t elements = 1;
  bool fits = shape.rank() < tensor::Shape::kMaxRank;
  for (const int64_t extent : shape.dims()) {
    fits = fits && extent >= 1 && extent <= kMostElements / elements;
    if (fits) elements *= extent;
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} of shape {}: at most {} axes, extents of at least 1, their product at most "
                  "{}",
                  what, shape.ToString(), tensor::Shape::kMaxRank - 1, kMostElements));
}

absl::Status CheckFormat(const SampleFormat& format) {
  RM_RETURN_IF_ERROR(CheckShape("samples", format.input.shape));
  RM_RETURN_IF_ERROR(CheckShape("labels", format.label_shape));
  if (format.input.dtype != tensor::DType::kF32 && format.input.dtype != tensor::DType::kI32) {
    return absl::InvalidArgumentError(fmt::format(
        "samples are {}; make them f32 features or i32 tokens", format.input.ToString()));
  }
  if (format.input.layout != tensor::Layout::kRowMajor) {
    return absl::InvalidArgumentError(
        fmt::format("samples are {}; make them row-major", format.input.ToString()));
  }
  const auto names = static_cast<int64_t>(format.label_names.size());
  if (names > 0 &&
      (format.label_shape.rank() != 1 || format.labels() != names || format.classes != names)) {
    return absl::InvalidArgumentError(
        fmt::format("labels of shape {} and {} scores have {} names; each needs one of its own",
                    format.label_shape.ToString(), format.classes, names));
  }
  if (format.classes < 1 || format.classes > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        fmt::format("labels of {} classes; at least 1 is needed", format.classes));
  }
  return absl::OkStatus();
}

absl::Status CheckValues(std::span<const int32_t> labels, const SampleFormat& format) {
  const int64_t values = format.has_independent_labels() ? 2 : format.classes;
  for (const int32_t label : labels) {
    if (label >= 0 && label < values) continue;
    if (format.has_independent_labels()) {
      return absl::InvalidArgumentError(
          fmt::format("label {} is neither 1 nor 0: each holds or does not", label));
    }
    return absl::InvalidArgumentError(
        fmt::format("label {} is not in 0..{} ({} classes)", label, values - 1, values));
  }
  return absl::OkStatus();
}

// Room for one sample.
struct Sample {
  explicit Sample(const SampleFormat& format)
      : input(format.InputsOf(1).shape, format.input.dtype),
        label(format.LabelsOf(1).shape, tensor::DType::kI32) {}

  // Reads one, whose labels it checks.
  absl::Status Read(const Dataset& samples, uint32_t row) {
    RM_RETURN_IF_ERROR(samples.Fill(std::span(&row, 1), input, label));
    return CheckLabels(samples.format(), std::span(&row, 1), label.span<int32_t>());
  }

  tensor::Tensor input, label;
};

absl::Status HashSamples(const std::string& part, const Dataset& samples, Sha256& hash) {
  const SampleFormat& format = samples.format();
  hash.Update(fmt::format("{} {} {} {} {}\n", part, samples.size(), format.input.ToString(),
                          format.label_shape.ToString(), format.classes));
  for (const std::string& name : format.label_names) hash.Update(name + '\0');
  Sample sample(format);
  for (uint32_t row = 0; row < samples.size(); ++row) {
    if (const absl::Status read = sample.Read(samples, row); !read.ok())
      return absl::Status(read.code(), fmt::format("{} {}", part, Message(read)));
    for (const tensor::Tensor* read : {&sample.input, &sample.label})
      hash.Update(std::span(static_cast<const std::byte*>(read->raw()), read->bytes()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSplits(Splits& splits) {
  if (splits.train == nullptr || splits.train->size() == 0)
    return absl::InvalidArgumentError("no samples to train on; at least 1 is needed");
  const SampleFormat& format = splits.train->format();
  RM_RETURN_IF_ERROR(CheckFormat(format));
  if (splits.held_out == nullptr) splits.held_out = std::make_unique<NoSamples>(format);
  if (!(splits.held_out->format() == format)) {
    return absl::InvalidArgumentError(
        "held-out samples have another format than those to train on");
  }
  if (!splits.fingerprint.empty()) return absl::OkStatus();
  Sha256 hash;
  RM_RETURN_IF_ERROR(HashSamples("training", *splits.train, hash));
  RM_RETURN_IF_ERROR(HashSamples("held-out", *splits.held_out, hash));
  splits.fingerprint = Hex(hash.Finish());
  return absl::OkStatus();
}

absl::Status CheckLabels(const SampleFormat& format, std::span<const uint32_t> rows,
                         std::span<const int32_t> labels) {
  const auto each = static_cast<size_t>(format.labels());
  for (size_t i = 0; i < rows.size(); ++i) {
    const absl::Status values = CheckValues(labels.subspan(i * each, each), format);
    if (!values.ok()) return Annotate(values, fmt::format("sample {}", rows[i]));
  }
  return absl::OkStatus();
}

absl::Status CheckLabels(const Dataset& samples, std::span<const uint32_t> rows) {
  Sample sample(samples.format());
  for (const uint32_t row : rows) RM_RETURN_IF_ERROR(sample.Read(samples, row));
  return absl::OkStatus();
}

}  // namespace ringmaster::data
