#include "runtime/collectives/transport/tcp/congestion.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "common/file.h"
#include "common/status.h"
#include "runtime/collectives/transport/tcp/socket.h"

namespace ringmaster::collectives::tcp {
namespace {

constexpr char kAllowed[] = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";
constexpr size_t kLongestName = 16;  // the kernel's TCP_CA_NAME_MAX

bool Set(int fd, const std::string& name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                    static_cast<socklen_t>(name.size())) == 0;
}

// All of 127.0.0.0/8, whose addresses may be two ends'. (IPv6 has one loopback address alone.)
bool IsLoopback(const SocketAddress& address) {
  return FormatHost(address).starts_with("127.");
}

bool StaysOnHost(int fd) {
  SocketAddress peer;
  peer.length = sizeof(peer.storage);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.length) != 0) return false;
  const absl::StatusOr<SocketAddress> own = LocalAddress(fd);
  return IsLoopback(peer) || (own.ok() && FormatHost(*own) == FormatHost(peer));
}

std::string Allowed() {
  std::string names;
  std::ifstream file(kAllowed);
  std::getline(file, names);
  return names.empty() ? "unknown" : names;
}

}  // namespace

absl::Status CheckCongestion(const std::string& choice) {
  if (choice == kAutoCongestion || choice == kMachineCongestion) return absl::OkStatus();
  const UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "socket");
  if (choice.size() < kLongestName && Set(fd.get(), choice)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("TCP congestion control '{}': this machine has none of that name, or keeps it "
                  "for root; auto, machine, or one of those that it allows: {}",
                  choice, Allowed()));
}

void ChooseCongestion(int fd, const std::string& choice) {
  if (choice == kMachineCongestion) return;
  if (choice != kAutoCongestion) {
    Set(fd, choice);
  } else if (StaysOnHost(fd)) {
    Set(fd, "reno");
  } else if (CongestionOf(fd).starts_with("bbr") && !Set(fd, "cubic")) {
    Set(fd, "reno");
  }
}

std::string CongestionOf(int fd) {
  char name[kLongestName] = "";
  socklen_t length = sizeof(name);
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) != 0) return "";
  return {name, strnlen(name, length)};
}

}  // namespace ringmaster::collectives::tcp
