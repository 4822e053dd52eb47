#include "common/framed_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <poll.h>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/check.h"
#include "common/status.h"

namespace ringmaster {
namespace {

constexpr size_t kLengthBytes = 4;

uint32_t DecodeLength(std::string_view bytes) {
  uint32_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i)
    length |= uint32_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  return length;
}

// As EncodeFrame, into memory that is there.
void WriteFrame(std::string_view payload, std::string& frame) {
  RM_CHECK(payload.size() <= kMaxFrameBytes, "a frame is within its limit");
  frame.clear();
  frame.reserve(kLengthBytes + payload.size());
  for (size_t i = 0; i < kLengthBytes; ++i)
    frame.push_back(static_cast<char>(payload.size() >> (8 * i)));
  frame.append(payload);
}

absl::Status TooLong(size_t length) {
  return absl::InvalidArgumentError(
      fmt::format("a message of {} bytes is over the limit of {}", length, kMaxFrameBytes));
}

// Milliseconds for poll, rounded up so that a wait never ends before its deadline; -1 for ever.
int PollTimeout(std::optional<SteadyTime> deadline) {
  if (!deadline) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*deadline - SystemClock().SteadyNow());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT32_MAX));
}

// How long a connect or a send may wait.
void SetSendTimeout(int fd, Duration timeout) {
  const auto micros =
      std::max<int64_t>(std::chrono::duration_cast<std::chrono::microseconds>(timeout).count(), 1);
  const timeval limit{micros / 1000000, micros % 1000000};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

absl::Status WaitReadable(int fd, std::optional<SteadyTime> deadline) {
  while (true) {
    pollfd entry{fd, POLLIN, 0};
    const int ready = ::poll(&entry, 1, PollTimeout(deadline));
    if (ready > 0) return absl::OkStatus();
    if (ready == 0) return absl::DeadlineExceededError("no message in time");
    if (errno != EINTR) return ErrnoStatus(errno, "poll");
  }
}

}  // namespace

std::string EncodeFrame(std::string_view payload) {
  std::string frame;
  WriteFrame(payload, frame);
  return frame;
}

void FrameParser::Append(std::string_view bytes) {
  pending_.erase(0, consumed_);
  consumed_ = 0;
  pending_.append(bytes);
}

absl::StatusOr<std::optional<std::string>> FrameParser::Next() {
  const std::string_view rest = std::string_view(pending_).substr(consumed_);
  if (rest.size() < kLengthBytes) return std::nullopt;
  const uint32_t length = DecodeLength(rest);
  if (length > kMaxFrameBytes) return absl::DataLossError(Message(TooLong(length)));
  if (rest.size() < kLengthBytes + length) return std::nullopt;
  consumed_ += kLengthBytes + length;
  return std::string(rest.substr(kLengthBytes, length));
}

absl::StatusOr<std::unique_ptr<FramedSocket>> FramedSocket::Dial(const std::string& path,
                                                                 Duration timeout) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(fmt::format("{}: too long for a socket's path ({} bytes)",
                                                  path, sizeof address.sun_path - 1));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, path);
  // Connecting to a Unix socket waits only while the listener's queue is full; that wait is the
  // send time-out's.
  SetSendTimeout(fd.get(), timeout);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return ErrnoStatus(errno == EAGAIN ? ETIMEDOUT : errno, path);
  return std::make_unique<FramedSocket>(std::move(fd));
}

FramedSocket::FramedSocket(UniqueFd fd, Duration send_timeout) : fd_(std::move(fd)) {
  SetSendTimeout(fd_.get(), send_timeout);
}

absl::Status FramedSocket::Send(std::string_view payload) {
  if (payload.size() > kMaxFrameBytes) return TooLong(payload.size());
  std::lock_guard lock(send_mutex_);
  WriteFrame(payload, sent_);
  size_t sent = 0;
  while (sent < sent_.size()) {
    const ssize_t n = ::send(fd_.get(), sent_.data() + sent, sent_.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      Shutdown();
      return absl::DeadlineExceededError("the other side does not read");
    }
    if (n < 0) return ErrnoStatus(errno, "send");
    sent += n;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> FramedSocket::Receive() {
  return ReceiveUntil(std::nullopt);
}

absl::StatusOr<std::string> FramedSocket::ReceiveWithin(Duration timeout) {
  return ReceiveUntil(SystemClock().SteadyNow() + timeout);
}

absl::StatusOr<std::string> FramedSocket::ReceiveUntil(std::optional<SteadyTime> deadline) {
  while (true) {
    RM_ASSIGN_OR_RETURN(std::optional<std::string> frame, parser_.Next());
    if (frame) return *std::move(frame);
    RM_RETURN_IF_ERROR(ReadSome(deadline));
  }
}

absl::Status FramedSocket::ReadSome(std::optional<SteadyTime> deadline) {
  RM_RETURN_IF_ERROR(WaitReadable(fd_.get(), deadline));
  char buffer[1 << 14];
  const ssize_t got = ::recv(fd_.get(), buffer, sizeof buffer, 0);
  if (got < 0) return errno == EINTR ? absl::OkStatus() : ErrnoStatus(errno, "recv");
  if (got == 0) return absl::UnavailableError("the other side has closed the connection");
  parser_.Append(std::string_view(buffer, got));
  return absl::OkStatus();
}

void FramedSocket::Shutdown() {
  ::shutdown(fd_.get(), SHUT_RDWR);
}

}  // namespace ringmaster
