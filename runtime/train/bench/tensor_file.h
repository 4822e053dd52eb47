// TensorFile: tensors under names, for a file in the safetensors format (checkpoint/safetensors.h),
// which other frameworks read.
#ifndef RINGMASTER_RUNTIME_TRAIN_BENCH_TENSOR_FILE_H_
#define RINGMASTER_RUNTIME_TRAIN_BENCH_TENSOR_FILE_H_

#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/tensor/tensor.h"

namespace ringmaster::train::bench {

// Not thread-safe.
class TensorFile {
 public:
  // Keeps the tensor, of f32, f64 or i32, under a name that is new. What a view refers to must
  // live, and stay as it is, until the file is written.
  void Add(const std::string& name, tensor::Tensor tensor);

  // Writes all of them, in the order in which they were added. Blocks; the whole file is in memory
  // meanwhile. Errors are WriteFileAtomically's.
  absl::Status Write(const std::string& path, const checkpoint::Metadata& metadata) const;

 private:
  std::deque<tensor::Tensor> tensors_;
  std::vector<checkpoint::TensorView> views_;  // of these
};

}  // namespace ringmaster::train::bench

#endif  // RINGMASTER_RUNTIME_TRAIN_BENCH_TENSOR_FILE_H_
