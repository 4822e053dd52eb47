// The few socket calls that the TCP transport makes. All sockets are non-blocking and closed on
// exec. Addresses are numeric: "10.0.0.7:7473", "[fd00::7]:7473"; names are never looked up here
// (the rendezvous gives addresses). Free functions; thread-safe on different descriptors.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_SOCKET_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_SOCKET_H_

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

#include <sys/socket.h>

#include "common/file.h"
#include "common/status.h"

namespace ringmaster::collectives::tcp {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  bool is_unspecified() const;  // 0.0.0.0 or ::
  SocketAddress with_port(int port) const;
};

// kInvalidArgument: not a numeric address with a port.
absl::StatusOr<SocketAddress> ParseAddress(const std::string& text);

// "10.0.0.7:7473"; FormatHost leaves the port out.
std::string FormatAddress(const SocketAddress& address);
std::string FormatHost(const SocketAddress& address);

absl::StatusOr<UniqueFd> ListenAt(const SocketAddress& address);
absl::StatusOr<SocketAddress> LocalAddress(int fd);

// Begins a connection from `source` (any port); it is made when the descriptor becomes writable and
// ConnectResult is OK.
absl::StatusOr<UniqueFd> StartConnecting(const SocketAddress& target, const SocketAddress& source);
absl::Status ConnectResult(int fd);

// No delay for small messages; and keep-alive probes, by which the kernel ends an idle connection
// to a machine that has vanished for `patience`, in whole seconds, at least four. It finds neither
// a stopped process nor that bytes which were sent arrive nowhere.
absl::Status TuneConnection(int fd, std::chrono::milliseconds patience);

enum class IoState { kComplete, kWouldBlock, kClosed, kFailed };

// Goes on filling `buffer` from `*done`. kFailed leaves errno set.
IoState ReceiveInto(int fd, std::span<std::byte> buffer, size_t* done);

// Sends a record that must fit into an idle socket's buffer whole; false if it did not.
bool SendRecord(int fd, std::span<const std::byte> record);

// Lets another thread end a poll.
class WakeUp {
 public:
  WakeUp();
  int fd() const { return fd_.get(); }
  void Signal();
  void Drain();

 private:
  UniqueFd fd_;
};

}  // namespace ringmaster::collectives::tcp

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_SOCKET_H_
