// Reading: whatever the bytes are, the answer is a whole file or an error, never a crash.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "runtime/checkpoint/safetensors.h"

namespace ringmaster::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr char kMetadataKey[] = "__metadata__";
constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = uint64_t{100} << 20;  // as the reference implementation has it

absl::Status Torn(const std::string& message) {
  return absl::DataLossError(message);
}

absl::StatusOr<std::string_view> HeaderText(std::string_view content) {
  if (content.size() < kLengthBytes) {
    return Torn(fmt::format("torn: {} bytes are too few for a file", content.size()));
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<uint64_t>(static_cast<unsigned char>(content[i])) << (8 * i);
  }
  if (length > kMaxHeaderBytes) return Torn("not a safetensors file: its header is too long");
  if (length > content.size() - kLengthBytes) return Torn("torn inside the header");
  return content.substr(kLengthBytes, length);
}

absl::StatusOr<Metadata> ReadMetadata(const Json& json) {
  Metadata metadata;
  if (!json.is_object()) return Torn("__metadata__ is not an object");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) return Torn(fmt::format("__metadata__.{} is not text", key));
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

std::optional<std::vector<uint64_t>> Naturals(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return std::nullopt;
  std::vector<uint64_t> values;
  for (const Json& item : *found) {
    if (!item.is_number_unsigned()) return std::nullopt;
    values.push_back(item.get<uint64_t>());
  }
  return values;
}

// Elements times their size, unless that is more than `limit`.
std::optional<uint64_t> BytesOf(std::span<const uint64_t> shape, uint64_t element, uint64_t limit) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  uint64_t bytes = element;
  for (const uint64_t extent : shape) {
    if (extent > limit / bytes) return std::nullopt;
    bytes *= extent;
  }
  return bytes;
}

absl::StatusOr<TensorView> ReadTensor(const std::string& name, const Json& json,
                                      std::span<const std::byte> data) {
  if (!json.is_object()) return Torn(fmt::format("tensor {} is not an object", name));
  TensorView tensor{.name = name};
  const auto dtype = json.find("dtype");
  if (dtype == json.end() || !dtype->is_string() || DtypeBytes(dtype->get<std::string>()) == 0) {
    return Torn(fmt::format("tensor {} has no dtype that is known", name));
  }
  tensor.dtype = dtype->get<std::string>();
  const auto shape = Naturals(json, "shape");
  const auto offsets = Naturals(json, "data_offsets");
  if (!shape || !offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1]) {
    return Torn(fmt::format("tensor {} has no shape or no place", name));
  }
  const uint64_t begin = (*offsets)[0];
  const uint64_t end = (*offsets)[1];
  if (end > data.size()) return Torn(fmt::format("torn inside tensor {}", name));
  const auto bytes = BytesOf(*shape, DtypeBytes(tensor.dtype), data.size());
  if (!bytes || *bytes != end - begin) {
    return Torn(
        fmt::format("tensor {} has {} bytes, which its shape does not fit", name, end - begin));
  }
  tensor.shape.assign(shape->begin(), shape->end());
  tensor.data = data.subspan(begin, end - begin);
  return tensor;
}

// The format allows neither holes nor overlaps.
absl::Status CheckPlaces(std::span<const TensorView> by_offset, std::span<const std::byte> data) {
  const std::byte* next = data.data();
  for (const TensorView& tensor : by_offset) {
    if (tensor.data.data() != next) {
      return Torn(fmt::format("tensor {} does not follow the one before", tensor.name));
    }
    next += tensor.data.size();
  }
  const size_t left = data.size() - static_cast<size_t>(next - data.data());
  return left == 0 ? absl::OkStatus() : Torn(fmt::format("{} bytes too many at its end", left));
}

// The members of the header's object; a name that stands twice is an error, which nlohmann's own
// objects would hide.
absl::StatusOr<Json> ParseHeader(std::string_view text) {
  std::vector<std::string> keys;
  const auto callback = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::key && depth == 1) keys.push_back(parsed.get<std::string>());
    return true;
  };
  Json header = Json::parse(text, callback, /*allow_exceptions=*/false);
  if (!header.is_object()) return Torn("its header is not a JSON object");
  if (keys.size() != header.size()) return Torn("its header has a name twice");
  return header;
}

}  // namespace

absl::StatusOr<Metadata> ParseMetadata(std::string_view beginning) {
  RM_ASSIGN_OR_RETURN(const std::string_view text, HeaderText(beginning));
  RM_ASSIGN_OR_RETURN(const Json header, ParseHeader(text));
  const auto found = header.find(kMetadataKey);
  return found == header.end() ? Metadata() : ReadMetadata(*found);
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Parse(std::string content,
                                                       const std::string& name) {
  // A vector keeps its memory when it is moved, which a short string does not.
  SafetensorsFile file;
  file.content_.assign(content.begin(), content.end());
  const auto read = [&]() -> absl::Status {
    const std::string_view whole(file.content_.data(), file.content_.size());
    RM_ASSIGN_OR_RETURN(const std::string_view text, HeaderText(whole));
    RM_ASSIGN_OR_RETURN(const Json header, ParseHeader(text));
    file.data_ = std::as_bytes(std::span(file.content_)).subspan(kLengthBytes + text.size());
    for (const auto& [key, value] : header.items()) {
      if (key == kMetadataKey) {
        RM_ASSIGN_OR_RETURN(file.metadata_, ReadMetadata(value));
        continue;
      }
      RM_ASSIGN_OR_RETURN(TensorView tensor, ReadTensor(key, value, file.data_));
      file.tensors_.push_back(std::move(tensor));
    }
    std::stable_sort(file.tensors_.begin(), file.tensors_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
    });
    return CheckPlaces(file.tensors_, file.data_);
  };
  RM_RETURN_IF_ERROR(Annotate(read(), name));
  return file;
}

}  // namespace ringmaster::checkpoint
