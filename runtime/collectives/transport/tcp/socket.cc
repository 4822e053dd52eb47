#include "runtime/collectives/transport/tcp/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <netdb.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>

#include "common/check.h"

namespace ringmaster::collectives::tcp {
namespace {

constexpr int kKeepCount = 3;
constexpr int64_t kLongestKeepSeconds = 32767;  // that the kernel takes

absl::Status SetInt(int fd, int level, int option, int value, const char* name) {
  if (setsockopt(fd, level, option, &value, sizeof(value)) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, fmt::format("setsockopt {}", name));
}

absl::StatusOr<UniqueFd> NewSocket(int family) {
  UniqueFd fd(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "socket");
  return fd;
}

std::string NumericHost(const SocketAddress& address, std::string* port) {
  char host[NI_MAXHOST] = "?";
  char service[NI_MAXSERV] = "?";
  getnameinfo(address.get(), address.length, host, sizeof(host), service, sizeof(service),
              NI_NUMERICHOST | NI_NUMERICSERV);
  if (port != nullptr) *port = service;
  return host;
}

}  // namespace

bool SocketAddress::is_unspecified() const {
  if (storage.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr == htonl(INADDR_ANY);
  }
  const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
  return std::memcmp(&address, &in6addr_any, sizeof(address)) == 0;
}

SocketAddress SocketAddress::with_port(int port) const {
  SocketAddress copy = *this;
  if (copy.storage.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&copy.storage)->sin_port = htons(static_cast<uint16_t>(port));
  } else {
    reinterpret_cast<sockaddr_in6*>(&copy.storage)->sin6_port = htons(static_cast<uint16_t>(port));
  }
  return copy;
}

absl::StatusOr<SocketAddress> ParseAddress(const std::string& text) {
  const auto invalid = [&] {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a numeric address with a port, as 10.0.0.7:7473", text));
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size()) return invalid();
  std::string host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  if (host.empty()) return invalid();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), text.c_str() + colon + 1, &hints, &found) != 0) return invalid();
  SocketAddress address;
  std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
  address.length = found->ai_addrlen;
  freeaddrinfo(found);
  return address;
}

std::string FormatAddress(const SocketAddress& address) {
  std::string port;
  const std::string host = NumericHost(address, &port);
  return address.storage.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port)
                                               : fmt::format("{}:{}", host, port);
}

std::string FormatHost(const SocketAddress& address) {
  return NumericHost(address, nullptr);
}

absl::StatusOr<UniqueFd> ListenAt(const SocketAddress& address) {
  RM_ASSIGN_OR_RETURN(UniqueFd fd, NewSocket(address.storage.ss_family));
  RM_RETURN_IF_ERROR(SetInt(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"));
  if (bind(fd.get(), address.get(), address.length) != 0 || listen(fd.get(), SOMAXCONN) != 0) {
    return ErrnoStatus(errno, "listen at " + FormatAddress(address));
  }
  return fd;
}

absl::StatusOr<SocketAddress> LocalAddress(int fd) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length) != 0) {
    return ErrnoStatus(errno, "getsockname");
  }
  return address;
}

absl::StatusOr<UniqueFd> StartConnecting(const SocketAddress& target, const SocketAddress& source) {
  RM_ASSIGN_OR_RETURN(UniqueFd fd, NewSocket(target.storage.ss_family));
  // From the worker's own address, so that peers and their logs see the pod. Where it listens on
  // all addresses the kernel picks.
  if (!source.is_unspecified() && source.storage.ss_family == target.storage.ss_family) {
    RM_RETURN_IF_ERROR(
        SetInt(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1, "IP_BIND_ADDRESS_NO_PORT"));
    const SocketAddress any_port = source.with_port(0);
    if (bind(fd.get(), any_port.get(), any_port.length) != 0) {
      return ErrnoStatus(errno, "bind " + FormatHost(source));
    }
  }
  if (connect(fd.get(), target.get(), target.length) != 0 && errno != EINPROGRESS) {
    return ErrnoStatus(errno, "connect");
  }
  return fd;
}

absl::Status ConnectResult(int fd) {
  int error = 0;
  socklen_t length = sizeof(error);
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  return error == 0 ? absl::OkStatus() : ErrnoStatus(error, "connect");
}

// TCP_USER_TIMEOUT stays unset: Linux counts against it the time for which a peer takes no bytes,
// though it acknowledges every probe, and a rank may be busy with others for as long as it works.
// Bytes that a vanished machine does not acknowledge are not noticed here then: whoever waits for
// it misses its signs of life.
absl::Status TuneConnection(int fd, std::chrono::milliseconds patience) {
  const auto part = std::chrono::ceil<std::chrono::seconds>(patience / (1 + kKeepCount));
  const int seconds = static_cast<int>(std::clamp<int64_t>(part.count(), 1, kLongestKeepSeconds));
  RM_RETURN_IF_ERROR(SetInt(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY"));
  RM_RETURN_IF_ERROR(SetInt(fd, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE"));
  RM_RETURN_IF_ERROR(SetInt(fd, IPPROTO_TCP, TCP_KEEPIDLE, seconds, "TCP_KEEPIDLE"));
  RM_RETURN_IF_ERROR(SetInt(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds, "TCP_KEEPINTVL"));
  return SetInt(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepCount, "TCP_KEEPCNT");
}

IoState ReceiveInto(int fd, std::span<std::byte> buffer, size_t* done) {
  while (*done < buffer.size()) {
    const ssize_t got = recv(fd, buffer.data() + *done, buffer.size() - *done, 0);
    if (got > 0) {
      *done += static_cast<size_t>(got);
    } else if (got == 0) {
      return IoState::kClosed;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return IoState::kWouldBlock;
    } else if (errno != EINTR) {
      return IoState::kFailed;
    }
  }
  return IoState::kComplete;
}

bool SendRecord(int fd, std::span<const std::byte> record) {
  ssize_t sent;
  do {
    sent = send(fd, record.data(), record.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(record.size());
}

WakeUp::WakeUp() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  RM_CHECK(fd_.valid(), "no descriptor is left for an eventfd");
}

void WakeUp::Signal() {
  const uint64_t one = 1;
  // A full counter is a signal already.
  [[maybe_unused]] const ssize_t written = write(fd_.get(), &one, sizeof(one));
}

void WakeUp::Drain() {
  uint64_t count;
  [[maybe_unused]] const ssize_t got = read(fd_.get(), &count, sizeof(count));
}

}  // namespace ringmaster::collectives::tcp
