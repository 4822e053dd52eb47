#include "runtime/train/bench/tensor_file.h"

#include <cstddef>
#include <utility>

#include "common/file.h"

namespace ringmaster::train::bench {
namespace {

// As the format spells it.
const char* FormatsName(tensor::DType dtype) {
  return dtype == tensor::DType::kF64 ? "F64" : dtype == tensor::DType::kI32 ? "I32" : "F32";
}

}  // namespace

void TensorFile::Add(const std::string& name, tensor::Tensor tensor) {
  const tensor::Tensor& kept = tensors_.emplace_back(std::move(tensor));
  const auto dims = kept.shape().dims();
  views_.push_back({.name = name,
                    .dtype = FormatsName(kept.dtype()),
                    .shape = {dims.begin(), dims.end()},
                    .data = {static_cast<const std::byte*>(kept.raw()), kept.bytes()}});
}

absl::Status TensorFile::Write(const std::string& path,
                               const checkpoint::Metadata& metadata) const {
  std::string text = checkpoint::EncodeHeader(views_, metadata);
  for (const checkpoint::TensorView& view : views_)
    text.append(reinterpret_cast<const char*>(view.data.data()), view.data.size());
  return WriteFileAtomically(path, text);
}

}  // namespace ringmaster::train::bench
