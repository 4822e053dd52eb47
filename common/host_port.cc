#include "common/host_port.h"

#include <charconv>

#include <fmt/format.h>

namespace ringmaster {
namespace {

constexpr int kLastPort = 65535;

}  // namespace

absl::StatusOr<HostAndPort> ParseHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  HostAndPort parts;
  const char* end = text.data() + text.size();
  const auto parsed = colon == std::string_view::npos
                          ? std::from_chars_result{end, std::errc::invalid_argument}
                          : std::from_chars(text.data() + colon + 1, end, parts.port);
  if (colon == 0 || parsed.ec != std::errc() || parsed.ptr != end || parts.port < 0 ||
      parts.port > kLastPort) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not host:port, for example 127.0.0.1:7470", text));
  }
  parts.host = text.substr(0, colon);
  if (parts.host.starts_with('[') && parts.host.ends_with(']'))
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  return parts;
}

}  // namespace ringmaster
