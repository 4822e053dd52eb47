// Messages over a stream socket: each is a 4-byte little-endian length and that many bytes. The
// launcher and its trainer speak so over their Unix socket (channel.proto); here are only bytes.
//
// FrameParser serves an event loop, FramedSocket a program that reads on a thread of its own:
//
//   RM_ASSIGN_OR_RETURN(auto channel, FramedSocket::Dial(path, std::chrono::seconds(10)));
//   std::thread reader([&] {
//     while (true) {
//       absl::StatusOr<std::string> frame = channel->Receive();
//       if (!frame.ok()) return;                      // the launcher is gone, or Shutdown
//       ...
//     }
//   });
//   RM_RETURN_IF_ERROR(channel->Send(bytes));         // from any thread
//   channel->Shutdown(); reader.join();
#ifndef RINGMASTER_COMMON_FRAMED_SOCKET_H_
#define RINGMASTER_COMMON_FRAMED_SOCKET_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/file.h"

namespace ringmaster {

// A longer frame is refused by both sides: a length beyond it means that the stream is not ours.
inline constexpr size_t kMaxFrameBytes = size_t{16} << 20;

// Nobody who still works does not read for so long.
inline constexpr Duration kSendTimeout = std::chrono::seconds(60);

// `payload` as it goes over the wire. The payload must not exceed kMaxFrameBytes.
std::string EncodeFrame(std::string_view payload);

// Cuts what arrives into frames. Not thread-safe.
class FrameParser {
 public:
  void Append(std::string_view bytes);
  // The next whole frame; nothing when more bytes are needed. kDataLoss when a length is over
  // kMaxFrameBytes: the stream has no frames any more, close it.
  absl::StatusOr<std::optional<std::string>> Next();

 private:
  std::string pending_;
  size_t consumed_ = 0;  // of pending_, handed out already
};

// A connected stream socket, with blocking calls. Send may be called from any thread, Receive from
// one at a time, Shutdown from any.
class FramedSocket {
 public:
  // Takes a connected socket. A Send waits up to `send_timeout` for the other side to read.
  explicit FramedSocket(UniqueFd fd, Duration send_timeout = kSendTimeout);

  // Connects to the Unix socket at `path`; waits up to `timeout` for it to accept. kNotFound or
  // kUnavailable when nobody listens there, kInvalidArgument when the path is too long for a
  // socket address.
  static absl::StatusOr<std::unique_ptr<FramedSocket>> Dial(const std::string& path,
                                                            Duration timeout);

  // Writes the whole frame; blocks while the other side does not read. kUnavailable when it is
  // gone, kInvalidArgument when the payload is too long, kDeadlineExceeded when it has not read for
  // the whole send time-out: the connection is then ended, for half a frame may be out.
  absl::Status Send(std::string_view payload);

  // Waits for a frame. kUnavailable at the end of the stream and after Shutdown, kDataLoss when
  // what arrives is no frame.
  absl::StatusOr<std::string> Receive();

  // As Receive, but kDeadlineExceeded when none has arrived in time; what has arrived is kept.
  absl::StatusOr<std::string> ReceiveWithin(Duration timeout);

  // Ends both directions: a waiting Receive returns.
  void Shutdown();

 private:
  absl::StatusOr<std::string> ReceiveUntil(std::optional<SteadyTime> deadline);
  absl::Status ReadSome(std::optional<SteadyTime> deadline);

  UniqueFd fd_;
  std::mutex send_mutex_;
  std::string sent_;  // by the last Send; its memory is the next one's
  FrameParser parser_;
};

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_FRAMED_SOCKET_H_
