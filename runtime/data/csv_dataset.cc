#include "runtime/data/csv_dataset.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/data/data_file.h"

namespace ringmaster::data {
namespace {

using training::v1alpha1::CsvData;

// Samples side by side in memory.
struct Table {
  std::vector<float> features;
  std::vector<int32_t> labels;
};

class CsvDataset : public Dataset {
 public:
  CsvDataset(SampleFormat format, Table table)
      : Dataset(std::move(format)), table_(std::move(table)) {}

  uint32_t size() const override {
    return static_cast<uint32_t>(table_.labels.size() / static_cast<size_t>(format().labels()));
  }

 private:
  void CopySample(uint32_t row, void* input, int32_t* labels) const override {
    const size_t width = static_cast<size_t>(format().input.shape.elements());
    std::memcpy(input, table_.features.data() + row * width, width * sizeof(float));
    const auto count = static_cast<size_t>(format().labels());
    std::memcpy(labels, table_.labels.data() + row * count, count * sizeof(int32_t));
  }

  Table table_;
};

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// Takes the text up to `separator` off the front of `rest`.
std::string_view TakeUntil(char separator, std::string_view& rest) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return taken;
}

// Takes the whole text as a number. invalid_argument or result_out_of_range where it is none.
template <typename T>
std::errc ParseAll(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return end == text.data() + text.size() ? error : std::errc::invalid_argument;
}

// Walks over the lines of one file and sorts the samples into the two parts.
class Reader {
 public:
  Reader(const CsvData& config, const DataFile& file, SampleFormat format)
      : config_(config),
        file_(file),
        format_(std::move(format)),
        width_(static_cast<size_t>(format_.input.shape.elements())),
        labels_(static_cast<size_t>(format_.labels())) {}

  absl::StatusOr<Splits> Read() {
    std::string_view rest = file_.content;
    if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);
    // So that the loop below never sees the empty lines at the end.
    rest = rest.substr(0, rest.find_last_not_of(" \t\r\n") + 1);
    for (; !rest.empty(); ++line_) {
      const std::string_view text = TakeUntil('\n', rest);
      RM_RETURN_IF_ERROR(CheckColumns(text));
      if (line_ == 1 && config_.header) {
        NameLabels(text);
        continue;
      }
      RM_RETURN_IF_ERROR(AddSample(text));
    }
    return Finish();
  }

 private:
  absl::Status CheckColumns(std::string_view text) const {
    const size_t columns =
        Trim(text).empty() ? 0 : static_cast<size_t>(std::count(text.begin(), text.end(), ',')) + 1;
    if (columns == width_ + labels_) return absl::OkStatus();
    return file_.ErrorAt(line_,
                         fmt::format("{} columns, but {} and a sample of shape {} need {}", columns,
                                     labels_ == 1 ? "a label" : fmt::format("{} labels", labels_),
                                     format_.input.shape.ToString(), width_ + labels_));
  }

  bool IsLabel(size_t column) const {
    const auto first = static_cast<size_t>(config_.label_column);
    return column >= first && column < first + labels_;
  }

  void NameLabels(std::string_view header) {
    if (!format_.has_independent_labels()) return;
    size_t label = 0;
    for (size_t column = 0; column < width_ + labels_; ++column) {
      const std::string_view cell = Trim(TakeUntil(',', header));
      if (IsLabel(column)) format_.label_names[label++] = cell;
    }
  }

  absl::Status AddSample(std::string_view text) {
    if (samples_ == std::numeric_limits<uint32_t>::max()) {
      return file_.ErrorAt(line_, "more samples than a data set holds");
    }
    ++samples_;
    const auto n = static_cast<uint64_t>(config_.hold_out_every);
    Table& table = n > 0 && samples_ % n == 0 ? held_out_ : train_;
    for (size_t column = 0; column < width_ + labels_; ++column) {
      const std::string_view cell = Trim(TakeUntil(',', text));
      RM_RETURN_IF_ERROR(IsLabel(column) ? AddLabel(cell, column, table)
                                         : AddFeature(cell, column, table));
    }
    return absl::OkStatus();
  }

  absl::Status AddLabel(std::string_view cell, size_t column, Table& table) const {
    int64_t label = 0;
    if (ParseAll(cell, &label) != std::errc()) {
      return file_.ErrorAt(
          line_, fmt::format("label {} in column {} is not a whole number", Quote(cell), column));
    }
    if (format_.has_independent_labels() && (label < 0 || label > 1)) {
      return file_.ErrorAt(
          line_, fmt::format("label {} in column {} is neither 0 nor 1 ({} labels)", label, column,
                             labels_));
    }
    if (!format_.has_independent_labels() && (label < 0 || label >= format_.classes)) {
      return file_.ErrorAt(line_, fmt::format("label {} is not in 0..{} ({} classes)", label,
                                              format_.classes - 1, format_.classes));
    }
    table.labels.push_back(static_cast<int32_t>(label));
    return absl::OkStatus();
  }

  absl::Status AddFeature(std::string_view cell, size_t column, Table& table) const {
    double value = 0;
    if (const std::errc error = ParseAll(cell, &value); error != std::errc()) {
      const bool range = error == std::errc::result_out_of_range;
      return file_.ErrorAt(line_, fmt::format("{} in column {} is {}", Quote(cell), column,
                                              range ? "out of range" : "not a number"));
    }
    const float feature = static_cast<float>(value / config_.scale);
    if (!std::isfinite(feature)) {
      return file_.ErrorAt(line_, fmt::format("{} in column {}, divided by scale {}, is not finite",
                                              Quote(cell), column, config_.scale));
    }
    table.features.push_back(feature);
    return absl::OkStatus();
  }

  absl::StatusOr<Splits> Finish() {
    if (samples_ == 0) return file_.ErrorAt(line_, "no samples after the header");
    if (train_.labels.empty()) {
      return file_.Error(fmt::format("holdOutEvery {} leaves none of {} samples for training",
                                     config_.hold_out_every, samples_));
    }
    const std::string settings = fmt::format(
        "csv header={} label={} {}={} shape={} scale={} hold-out={}", config_.header,
        config_.label_column, format_.has_independent_labels() ? "labels" : "classes",
        format_.classes, format_.input.shape.ToString(), config_.scale, config_.hold_out_every);
    return Splits{.train = std::make_unique<CsvDataset>(format_, std::move(train_)),
                  .held_out = std::make_unique<CsvDataset>(format_, std::move(held_out_)),
                  .fingerprint = Fingerprint(file_.content, settings)};
  }

  const CsvData& config_;
  const DataFile& file_;
  SampleFormat format_;
  const size_t width_;   // features of a sample
  const size_t labels_;  // of a sample
  size_t line_ = 1;
  uint64_t samples_ = 0;
  Table train_, held_out_;
};

absl::StatusOr<tensor::Shape> SampleShape(const CsvData& config, const DataFile& file) {
  // More columns than this are no row of numbers, and the product below must not overflow.
  constexpr int64_t kMaxFeatures = int64_t{1} << 24;
  int64_t features = 1;
  for (const int32_t extent : config.shape) {
    if (extent < 1 || (features *= extent) > kMaxFeatures) {
      return file.Error(
          fmt::format("shape: extents are at least 1 and their product at most {}", kMaxFeatures));
    }
  }
  if (config.label_column > features) {
    return file.Error(
        fmt::format("labelColumn {} is past the last column, {}", config.label_column, features));
  }
  return tensor::Shape(std::vector<int64_t>(config.shape.begin(), config.shape.end()));
}

}  // namespace

absl::StatusOr<Splits> LoadCsv(const CsvData& config, const std::string& workspace) {
  RM_ASSIGN_OR_RETURN(const DataFile file, ReadDataFile(config.path, workspace));
  RM_ASSIGN_OR_RETURN(const tensor::Shape shape, SampleShape(config, file));
  SampleFormat format{.input = {shape, tensor::DType::kF32},
                      .classes = config.labels.value_or(config.classes.value_or(0))};
  if (config.labels) {
    format.label_shape = tensor::Shape{*config.labels};
    for (int32_t label = 0; label < *config.labels; ++label)
      format.label_names.push_back(fmt::format("{}", label));
  }
  return Reader(config, file, std::move(format)).Read();
}

}  // namespace ringmaster::data
