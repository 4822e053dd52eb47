#include "runtime/collectives/bench/options.h"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

namespace ringmaster::collectives::bench {
namespace {

constexpr size_t kLargest = size_t{16} << 30;

}  // namespace

absl::StatusOr<size_t> ParseSize(const std::string& text) {
  size_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  const std::string_view unit(parsed.ptr, static_cast<size_t>(end - parsed.ptr));
  const size_t scale = unit.empty()                 ? 1
                       : unit == "K" || unit == "k" ? size_t{1} << 10
                       : unit == "M" || unit == "m" ? size_t{1} << 20
                       : unit == "G" || unit == "g" ? size_t{1} << 30
                                                    : 0;
  if (parsed.ec != std::errc() || scale == 0 || number == 0) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not a size; write 4, 64K, 256M or 1G", text));
  }
  if (number > kLargest / scale)
    return absl::InvalidArgumentError(fmt::format("{} is more than 16G", text));
  return number * scale;
}

absl::StatusOr<std::vector<size_t>> Sizes(const Options& options) {
  if (options.max_bytes < options.min_bytes) {
    return absl::InvalidArgumentError(fmt::format("--max: {} bytes are less than --min's {}",
                                                  options.max_bytes, options.min_bytes));
  }
  std::vector<size_t> sizes;
  for (size_t size = options.min_bytes; size <= options.max_bytes; size *= options.factor)
    sizes.push_back(size);
  return sizes;
}

}  // namespace ringmaster::collectives::bench
