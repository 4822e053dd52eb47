// Dataset: samples by number, and how a job's data files become two of them.
//
// The trainer loads a job's data once, whole, into memory; a step then copies the rows that it
// needs into the graph's input buffers. Which rows those are is decided by sample_stream.h, never
// here. A loaded dataset is immutable, so every method is const and thread-safe.
//
//   RM_ASSIGN_OR_RETURN(data::Splits splits, data::Load(config.data, workspace));
//   splits.train->Fill(rows, inputs, labels);
#ifndef RINGMASTER_RUNTIME_DATA_DATASET_H_
#define RINGMASTER_RUNTIME_DATA_DATASET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/tensor/shape.h"
#include "runtime/tensor/tensor.h"

namespace ringmaster::training::v1alpha1 {
struct Data;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::data {

// What one sample looks like, without the batch axis.
struct SampleFormat {
  tensor::ValueSpec input;      // f32 features, or i32 tokens
  tensor::Shape label_shape{};  // [] for one label per sample, [window] for text; labels are i32
  int64_t classes = 0;          // labels are 0 .. classes-1; for text also the number of tokens
  // Of labels that each hold (1) or do not (0), whatever the others do. label_shape is then their
  // number, and so is `classes`, which is the number of scores.
  std::vector<std::string> label_names{};

  bool has_independent_labels() const { return !label_names.empty(); }
  // Labels that one sample carries.
  int64_t labels() const { return label_shape.elements(); }
  // What `rows` samples together are: [rows] + the shape of one.
  tensor::ValueSpec InputsOf(size_t rows) const;
  tensor::ValueSpec LabelsOf(size_t rows) const;
  bool operator==(const SampleFormat&) const = default;
};

class Dataset {
 public:
  explicit Dataset(SampleFormat format) : format_(std::move(format)) {}
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  // Number of samples; 0 for a held-out part that nobody asked for.
  virtual uint32_t size() const = 0;
  const SampleFormat& format() const { return format_; }

  // Copies samples `rows` to `inputs` ([rows] + format().input) and `labels` ([rows] +
  // label_shape). Blocks for a memory copy only. kInvalidArgument, with nothing written, if a
  // tensor has another shape or type or a row is not below size().
  absl::Status Fill(std::span<const uint32_t> rows, tensor::Tensor& inputs,
                    tensor::Tensor& labels) const;

  // The same as training sees them: what is left to chance (image_dataset.h) follows from a
  // sample's place in the sample stream, `positions`, as many as rows. kInvalidArgument as above.
  absl::Status FillForTraining(std::span<const uint32_t> rows, std::span<const uint64_t> positions,
                               tensor::Tensor& inputs, tensor::Tensor& labels) const;

 protected:
  // A sample of a data set that this one makes its own from.
  static void Copy(const Dataset& from, uint32_t row, void* input, int32_t* labels) {
    from.CopySample(row, input, labels);
  }

 private:
  absl::Status Check(std::span<const uint32_t> rows, const tensor::Tensor& inputs,
                     const tensor::Tensor& labels) const;
  // Copies one sample whose number and destination were checked.
  virtual void CopySample(uint32_t row, void* input, int32_t* labels) const = 0;
  virtual void CopyTrainingSample(uint32_t row, uint64_t /*position*/, void* input,
                                  int32_t* labels) const {
    CopySample(row, input, labels);
  }

  SampleFormat format_;
};

// Writes sample `row` of a dataset to `input`, as many bytes as one has (f32 or i32, row-major),
// and its labels. Called by one thread at a time; for one row always the same.
using CopyFunction = std::function<void(uint32_t row, void* input, int32_t* labels)>;

// A dataset whose `size` samples a function writes.
std::unique_ptr<const Dataset> MakeDataset(SampleFormat format, uint32_t size, CopyFunction copy);

// The two parts of a job's data.
struct Splits {
  std::unique_ptr<const Dataset> train;     // at least one sample
  std::unique_ptr<const Dataset> held_out;  // never null; may be empty
  // SHA-256, in hex, of the data file and of the settings that cut it: equal on every worker, or
  // the workers do not train on the same samples.
  std::string fingerprint{};
};

// Reads the file that `config` names, relative to `workspace` unless absolute. Blocks on the disk.
//   kNotFound          there is no such file
//   kInvalidArgument   it is malformed, empty, too large or not a file, or the settings do not
//                      fit it; the message begins with "path:line: " where a line is to blame,
//                      else with "path: "
//   kInternal          reading failed
absl::StatusOr<Splits> Load(const training::v1alpha1::Data& config, const std::string& workspace);

}  // namespace ringmaster::data

#endif  // RINGMASTER_RUNTIME_DATA_DATASET_H_
