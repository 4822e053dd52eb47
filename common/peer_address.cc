#include "common/peer_address.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/if.h>
#include <netinet/in.h>

#include "common/contract.h"
#include "common/env.h"
#include "common/status.h"

namespace ringmaster {
namespace {

// A node may have hundreds, of pods that are not ours.
constexpr size_t kAddressesListed = 32;

struct IpAddress {
  int family = AF_UNSPEC;
  std::array<uint8_t, sizeof(in6_addr)> bytes{};

  int bits() const { return family == AF_INET ? 32 : 128; }
};

std::optional<IpAddress> ParseIp(const std::string& text) {
  IpAddress address;
  for (const int family : {AF_INET, AF_INET6}) {
    address.family = family;
    if (::inet_pton(family, text.c_str(), address.bytes.data()) == 1) return address;
  }
  return std::nullopt;
}

struct Subnet {
  IpAddress base;
  int prefix = 0;

  bool Contains(const IpAddress& address) const {
    constexpr int kByte = 8;
    const auto whole = static_cast<size_t>(prefix / kByte);
    const int rest = prefix % kByte;
    const bool same =
        address.family == base.family &&
        std::equal(base.bytes.begin(), base.bytes.begin() + whole, address.bytes.begin());
    if (!same || rest == 0) return same;
    return ((base.bytes[whole] ^ address.bytes[whole]) >> (kByte - rest)) == 0;
  }
};

// One part of the list: a subnet, or the name of an interface.
struct Wanted {
  std::string text;
  std::optional<Subnet> subnet;
};

std::optional<Subnet> ParseSubnet(const std::string& text) {
  const size_t slash = text.find('/');
  const std::optional<IpAddress> base = ParseIp(text.substr(0, slash));
  if (!base) return std::nullopt;
  Subnet subnet{.base = *base};
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + slash + 1, end, subnet.prefix);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == end;
  if (!whole || subnet.prefix < 0 || subnet.prefix > base->bits()) return std::nullopt;
  return subnet;
}

// As the kernel takes it for one.
bool IsInterfaceName(std::string_view text) {
  return !text.empty() && text.size() < IFNAMSIZ &&
         text.find_first_of(" \t\r\n:/") == std::string_view::npos;
}

absl::StatusOr<Wanted> ParseWanted(std::string text) {
  Wanted wanted{.text = std::move(text)};
  const bool is_subnet = wanted.text.find('/') != std::string::npos;
  if (is_subnet) wanted.subnet = ParseSubnet(wanted.text);
  if (is_subnet ? wanted.subnet.has_value() : IsInterfaceName(wanted.text)) return wanted;
  return absl::InvalidArgumentError(
      fmt::format("'{}' is neither the name of a network interface nor a subnet, for example net1, "
                  "10.2.0.0/16 or fd00:2::/64",
                  wanted.text));
}

absl::StatusOr<std::vector<Wanted>> ParseList(std::string_view text) {
  std::vector<Wanted> list;
  while (true) {
    const size_t comma = text.find(',');
    RM_ASSIGN_OR_RETURN(Wanted wanted, ParseWanted(std::string(text.substr(0, comma))));
    list.push_back(std::move(wanted));
    if (comma == std::string_view::npos) return list;
    text.remove_prefix(comma + 1);
  }
}

std::vector<std::string> AddressesOf(const Wanted& wanted,
                                     const std::vector<NetworkInterface>& interfaces) {
  std::vector<std::string> addresses;
  for (const NetworkInterface& interface : interfaces) {
    if (!interface.up) continue;
    for (const std::string& address : interface.addresses) {
      const bool chosen = wanted.subnet ? wanted.subnet->Contains(ParseIp(address).value())
                                        : wanted.text == interface.name;
      if (chosen) addresses.push_back(address);
    }
  }
  return addresses;
}

// A virtual address that lies beside the pod's own, as of a host's keeper of such, may move away.
const std::string& Best(const std::vector<std::string>& addresses, const std::string& pod_ip) {
  const std::optional<IpAddress> own = ParseIp(pod_ip);
  const auto rank = [&](const std::string& address) {
    if (address == pod_ip) return 0;
    return own && ParseIp(address).value().family == own->family ? 1 : 2;
  };
  return *std::min_element(
      addresses.begin(), addresses.end(),
      [&](const std::string& a, const std::string& b) { return rank(a) < rank(b); });
}

std::string WhyNot(const Wanted& wanted, const std::vector<NetworkInterface>& interfaces) {
  if (wanted.subnet) return fmt::format("no address is in {}", wanted.text);
  const auto named =
      std::find_if(interfaces.begin(), interfaces.end(),
                   [&](const NetworkInterface& one) { return one.name == wanted.text; });
  if (named == interfaces.end()) return fmt::format("there is no interface {}", wanted.text);
  return fmt::format("interface {} {}", wanted.text, named->up ? "has no address" : "is down");
}

// "eth0 10.1.0.5, lo 127.0.0.1".
std::string Inventory(const std::vector<NetworkInterface>& interfaces) {
  std::vector<std::string> all;
  for (const NetworkInterface& interface : interfaces) {
    if (!interface.up) continue;
    for (const std::string& address : interface.addresses)
      all.push_back(fmt::format("{} {}", interface.name, address));
  }
  if (all.empty()) return "no address on an interface that is up";
  const size_t more = all.size() - std::min(all.size(), kAddressesListed);
  all.resize(all.size() - more);
  return fmt::format("{}{}", fmt::join(all, ", "),
                     more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

absl::StatusOr<std::string> ChooseAddress(std::string_view wanted, const std::string& pod_ip,
                                          const std::vector<NetworkInterface>& interfaces) {
  RM_ASSIGN_OR_RETURN(const std::vector<Wanted> list, ParseList(wanted));
  std::vector<std::string> reasons;
  for (const Wanted& one : list) {
    const std::vector<std::string> addresses = AddressesOf(one, interfaces);
    if (!addresses.empty()) return Best(addresses, pod_ip);
    reasons.push_back(WhyNot(one, interfaces));
  }
  return absl::NotFoundError(
      fmt::format("{}; this worker has {}", fmt::join(reasons, ", "), Inventory(interfaces)));
}

absl::Status CheckNetworks(std::string_view wanted) {
  return ParseList(wanted).status();
}

absl::StatusOr<std::string> PeerAddress(const std::string& pod_ip) {
  if (!env::IsSet(contract::kEnvPeerInterface)) return pod_ip;
  RM_ASSIGN_OR_RETURN(const std::vector<NetworkInterface> interfaces, ReadNetworkInterfaces());
  auto address = ChooseAddress(env::GetString(contract::kEnvPeerInterface), pod_ip, interfaces);
  if (address.ok()) return address;
  return Annotate(address.status(),
                  fmt::format("environment variable {}", contract::kEnvPeerInterface));
}

}  // namespace ringmaster
