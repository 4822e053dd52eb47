#include "common/host_port.h"

#include <charconv>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

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

std::string JoinHostPort(std::string_view host, int port) {
  const bool bare_v6 = host.find(':') != std::string_view::npos && !host.starts_with('[');
  return bare_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

bool IsNumericHostPort(std::string_view text) {
  constexpr size_t kLongest = INET6_ADDRSTRLEN + std::string_view("[]:65535").size();
  if (text.size() > kLongest || text.find('\0') != std::string_view::npos) return false;
  const auto parts = ParseHostPort(text);
  if (!parts.ok() || parts->port == 0) return false;
  in6_addr bytes;
  return ::inet_pton(text.starts_with('[') ? AF_INET6 : AF_INET, parts->host.c_str(), &bytes) == 1;
}

}  // namespace ringmaster
