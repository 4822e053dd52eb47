// Numbers in a checkpoint's metadata, which is text.
#ifndef RINGMASTER_RUNTIME_TRAIN_METADATA_H_
#define RINGMASTER_RUNTIME_TRAIN_METADATA_H_

#include <charconv>
#include <string>

#include <fmt/format.h>

#include "absl/status/statusor.h"
#include "runtime/checkpoint/safetensors.h"

namespace ringmaster::train {

// Empty where there is none.
inline std::string Text(const checkpoint::Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : found->second;
}

// As fmt writes it, whole. kDataLoss where there is none.
template <typename T>
absl::StatusOr<T> Number(const checkpoint::Metadata& metadata, const std::string& key) {
  const std::string text = Text(metadata, key);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return absl::DataLossError(fmt::format("its {} is '{}'", key, text));
  }
  return value;
}

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_METADATA_H_
