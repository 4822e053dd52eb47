// The safetensors format (https://github.com/huggingface/safetensors, "Format"): named arrays in
// one file that other tools read, and that holds no code.
//
//   8 bytes   N, the length of the header, little-endian
//   N bytes   JSON: {"__metadata__": {text: text}, "NAME": {"dtype": "F32", "shape": [10, 64],
//             "data_offsets": [begin, end]}, ...}, padded with spaces to a multiple of 8
//   the rest  the arrays, row-major and little-endian, without holes, in the order of their offsets
//
// Everything here is stateless or immutable, and thread-safe.
#ifndef RINGMASTER_RUNTIME_CHECKPOINT_SAFETENSORS_H_
#define RINGMASTER_RUNTIME_CHECKPOINT_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ringmaster::checkpoint {

using Metadata = std::map<std::string, std::string>;

// An array with its name. The bytes belong to somebody else.
struct TensorView {
  std::string name;
  std::string dtype = "F32";  // as the format spells it
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

// Bytes of one element of a dtype, 0 for one that the format does not have.
size_t DtypeBytes(std::string_view dtype);

// The file up to where the arrays begin. They follow in the order given, one after another.
std::string EncodeHeader(std::span<const TensorView> tensors, const Metadata& metadata);

// The metadata of a file, from as much of its beginning as holds the header. kDataLoss when it does
// not, or when the header is none.
absl::StatusOr<Metadata> ParseMetadata(std::string_view beginning);

// A parsed file. Owns the content; the views stay valid while it lives, also when it is moved.
class SafetensorsFile {
 public:
  // `name` is put before error messages. kDataLoss when the content is not a whole file of the
  // format: torn, a header that is no such JSON, arrays that overlap, leave holes or have another
  // size than their shape says.
  static absl::StatusOr<SafetensorsFile> Parse(std::string content, const std::string& name);

  SafetensorsFile(SafetensorsFile&&) = default;
  SafetensorsFile& operator=(SafetensorsFile&&) = default;

  const Metadata& metadata() const { return metadata_; }
  const std::vector<TensorView>& tensors() const { return tensors_; }
  // All arrays, as they lie in the file.
  std::span<const std::byte> data() const { return data_; }

 private:
  SafetensorsFile() = default;

  std::vector<char> content_;
  Metadata metadata_;
  std::vector<TensorView> tensors_;  // by offset
  std::span<const std::byte> data_;
};

}  // namespace ringmaster::checkpoint

#endif  // RINGMASTER_RUNTIME_CHECKPOINT_SAFETENSORS_H_
