#include "runtime/checkpoint/safetensors.h"

#include <array>
#include <bit>
#include <utility>

#include <nlohmann/json.hpp>

namespace ringmaster::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays are written as they lie in memory");

constexpr size_t kHeaderAlignment = 8;

constexpr std::array<std::pair<std::string_view, size_t>, 14> kDtypes = {{{"BOOL", 1},
                                                                          {"U8", 1},
                                                                          {"I8", 1},
                                                                          {"F8_E5M2", 1},
                                                                          {"F8_E4M3", 1},
                                                                          {"I16", 2},
                                                                          {"U16", 2},
                                                                          {"F16", 2},
                                                                          {"BF16", 2},
                                                                          {"I32", 4},
                                                                          {"U32", 4},
                                                                          {"F32", 4},
                                                                          {"F64", 8},
                                                                          {"I64", 8}}};

}  // namespace

size_t DtypeBytes(std::string_view dtype) {
  for (const auto& [name, bytes] : kDtypes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

std::string EncodeHeader(std::span<const TensorView> tensors, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    const uint64_t end = offset + tensor.data.size();
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((kHeaderAlignment - text.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  std::string encoded;
  for (size_t i = 0; i < 8; ++i) {
    encoded += static_cast<char>((static_cast<uint64_t>(text.size()) >> (8 * i)) & 0xff);
  }
  return encoded + text;
}

}  // namespace ringmaster::checkpoint
