#include "common/network_interfaces.h"

#include <algorithm>
#include <cerrno>
#include <ifaddrs.h>
#include <memory>
#include <string_view>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include "common/status.h"

namespace ringmaster {
namespace {

// Empty for what is no address that a peer can dial.
std::string FormatHost(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address == nullptr) return text;
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    if (!IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
      ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
  }
  return text;
}

NetworkInterface& Named(std::string_view name, std::vector<NetworkInterface>& interfaces) {
  const auto known = std::find_if(interfaces.begin(), interfaces.end(),
                                  [&](const NetworkInterface& one) { return one.name == name; });
  if (known != interfaces.end()) return *known;
  interfaces.push_back({.name = std::string(name)});
  return interfaces.back();
}

}  // namespace

absl::StatusOr<std::vector<NetworkInterface>> ReadNetworkInterfaces() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return ErrnoStatus(errno, "cannot list the network interfaces");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> entries(first, ::freeifaddrs);
  std::vector<NetworkInterface> interfaces;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    // An address may have a label, eth0:fast, in the place of its interface's name.
    const std::string_view label = entry->ifa_name;
    NetworkInterface& interface = Named(label.substr(0, label.find(':')), interfaces);
    interface.up = (entry->ifa_flags & IFF_UP) != 0;
    const std::string address = FormatHost(entry->ifa_addr);
    if (!address.empty()) interface.addresses.push_back(address);
  }
  return interfaces;
}

}  // namespace ringmaster
