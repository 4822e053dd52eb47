#include "common/bind_request.h"

#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace ringmaster {
namespace {

constexpr int kMost = 1024;  // as many processors as an affinity mask has room for

std::optional<int> ParseCount(std::string_view text, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value >= least && value <= kMost ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string FormatBindRequest(const BindRequest& request) {
  return fmt::format("{}+{}", request.threads, request.communication);
}

absl::StatusOr<BindRequest> ParseBindRequest(std::string_view text) {
  const size_t plus = text.find('+');
  const auto threads = ParseCount(text.substr(0, plus), 1);
  const auto communication =
      plus == std::string_view::npos ? std::nullopt : ParseCount(text.substr(plus + 1), 0);
  if (!threads || !communication) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no number of threads and of cores for communication (2+1)", text));
  }
  return BindRequest{.threads = *threads, .communication = *communication};
}

}  // namespace ringmaster
