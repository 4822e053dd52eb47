#include "runtime/collectives/bench/options.h"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "common/status.h"

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

namespace {

absl::StatusOr<Point> ParsePoint(std::string_view text, int iterations) {
  const size_t colon = text.find(':');
  RM_ASSIGN_OR_RETURN(const size_t bytes, ParseSize(std::string(text.substr(0, colon))));
  if (colon == std::string_view::npos) return Point{bytes, iterations};
  const std::string_view calls = text.substr(colon + 1);
  const auto parsed = std::from_chars(calls.data(), calls.data() + calls.size(), iterations);
  if (parsed.ec == std::errc() && parsed.ptr == calls.data() + calls.size() && iterations >= 1)
    return Point{bytes, iterations};
  return absl::InvalidArgumentError(
      fmt::format("'{}': write a size, or a size and its calls, as 64K:100", text));
}

}  // namespace

absl::StatusOr<std::vector<Point>> Points(const Options& options) {
  std::vector<Point> points;
  if (!options.points.empty()) {
    std::string_view rest = options.points;
    while (true) {
      const size_t comma = rest.find(',');
      RM_ASSIGN_OR_RETURN(points.emplace_back(),
                          ParsePoint(rest.substr(0, comma), options.iterations));
      if (comma == std::string_view::npos) return points;
      rest.remove_prefix(comma + 1);
    }
  }
  if (options.max_bytes < options.min_bytes) {
    return absl::InvalidArgumentError(fmt::format("--max: {} bytes are less than --min's {}",
                                                  options.max_bytes, options.min_bytes));
  }
  for (size_t size = options.min_bytes; size <= options.max_bytes; size *= options.factor)
    points.push_back({size, options.iterations});
  return points;
}

}  // namespace ringmaster::collectives::bench
