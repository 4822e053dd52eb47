#include "operator/kube/rest/server_address.h"

#include <charconv>

#include <fmt/format.h>

#include "common/host_port.h"
#include "common/status.h"

namespace ringmaster::kube::rest {
namespace {

absl::Status Wrong(std::string_view text, std::string_view why) {
  // Without a user that it may name, whose password would follow.
  const std::size_t at = text.find('@');
  return absl::InvalidArgumentError(fmt::format("server: \"{}\" {}; write https://host:port",
                                                at == text.npos ? text : "…@…", why));
}

bool Skip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

absl::Status ParsePort(std::string_view text, std::string_view port, ServerAddress& address) {
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size() || address.port < 1 ||
      address.port > 65535) {
    return Wrong(text, "has no port from 1 to 65535");
  }
  return absl::OkStatus();
}

}  // namespace

std::string ServerAddress::HostHeader() const {
  return JoinHostPort(host, port);
}

absl::StatusOr<ServerAddress> ParseServerAddress(std::string_view text) {
  ServerAddress address;
  std::string_view rest = text;
  if (!Skip(rest, "https://")) {
    if (!Skip(rest, "http://")) return Wrong(text, "begins with neither https:// nor http://");
    address.tls = false;
  }
  if (rest.find_first_of("@?#% \\") != rest.npos) return Wrong(text, "has more than an address");
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  address.path = rest.substr(slash);
  while (!address.path.empty() && address.path.back() == '/') address.path.pop_back();
  address.port = address.tls ? 443 : 80;
  std::size_t host_end = authority.find(':');
  if (Skip(authority, "[")) {
    const std::size_t bracket = authority.find(']');
    if (bracket == authority.npos) return Wrong(text, "has no ] behind its address");
    address.host = authority.substr(0, bracket);
    authority.remove_prefix(bracket + 1);
    host_end = 0;
    if (address.host.find(':') == std::string::npos)
      return Wrong(text, "has no IPv6 address in []");
  } else {
    address.host = authority.substr(0, host_end);
  }
  if (address.host.empty()) return Wrong(text, "has no host");
  if (host_end == authority.npos || authority.substr(host_end).empty()) return address;
  if (authority[host_end] != ':') return Wrong(text, "has something behind its host");
  RM_RETURN_IF_ERROR(ParsePort(text, authority.substr(host_end + 1), address));
  return address;
}

}  // namespace ringmaster::kube::rest
