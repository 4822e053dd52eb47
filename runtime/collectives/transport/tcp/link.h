// The frames to and from one peer: queues of what is to be sent and received, and the socket once
// there is one.
//
// A link moves bytes and cuts them into frames; what a frame means is its handler's business. It
// reads ahead by one header only: data that no receive was posted for stays in the kernel, so a
// fast peer is held back by TCP. One thread. All statuses are about the peer ("closed the
// connection ..."), for the caller to put a name before.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_LINK_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_LINK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>

#include "common/clock.h"
#include "common/file.h"
#include "runtime/collectives/transport/frame.h"

namespace ringmaster::collectives::tcp {

class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  // A whole frame of any type but kData. An error ends the round.
  virtual absl::Status OnControl(int peer, const FrameHeader& header, const std::string& text) = 0;
  // A data frame begins. `expected` is the size of the receive that it meets, nothing if none is
  // posted yet; called again when one is.
  virtual absl::Status OnData(int peer, const FrameHeader& header,
                              std::optional<size_t> expected) = 0;
};

class Link {
 public:
  // `handler` must outlive the link.
  Link(int peer, FrameHandler* handler);

  void Attach(UniqueFd fd, SteadyTime now);
  bool attached() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  bool left() const { return left_; }  // said goodbye

  // Drops the counts of the last operation, all of whose work must be done.
  void StartOperation();
  // Drops everything posted, except that a frame whose first byte is sent is kept whole if
  // `keep_partial`.
  void DropWork(bool keep_partial);

  // Queues a frame; before there is a connection, too. `bytes` are not copied.
  void QueueData(const FrameHeader& header, std::span<const std::byte> bytes);
  void QueueControl(const FrameHeader& header, const std::string& text);
  // The number of the receive, from 1 in each operation.
  uint64_t PostReceive(std::span<std::byte> bytes);

  uint64_t completed_receives() const { return completed_; }
  bool has_queued() const { return !queue_.empty(); }
  bool has_posted() const { return !posted_.empty(); }
  bool has_work() const { return has_queued() || has_posted(); }

  // Writes and reads as much as goes without blocking.
  absl::Status Write(SteadyTime now);
  absl::Status Read(SteadyTime now);

  // What to poll for; nothing (0) while a data frame waits for its receive.
  short interest() const;

  // A data frame whose header was read early has its receive now: Read goes on without any new byte
  // (the payload may be empty).
  bool unblocked() const { return awaits_receive() && !posted_.empty(); }
  // The peer has sent more than this rank has asked for, so nothing further is read from it.
  bool held_back() const { return awaits_receive() && posted_.empty(); }

  SteadyTime last_heard() const { return last_heard_; }        // any byte came, or reading went on
  SteadyTime last_progress() const { return last_progress_; }  // a byte of data came or went
  uint64_t bytes_sent() const { return bytes_sent_; }
  uint64_t bytes_received() const { return bytes_received_; }

  // Reads and drops what has come, and closes: unread bytes would make the kernel reset the
  // connection and lose what was sent last.
  void Close();

 private:
  struct Outgoing {
    FrameHeaderBytes header;
    std::string text{};                    // of a control frame
    std::span<const std::byte> payload{};  // of a data frame
    size_t sent = 0;
    bool alive = false;  // kAlive: nothing is lost where nobody hears it

    std::span<const std::byte> body() const {
      return text.empty() ? payload : std::as_bytes(std::span<const char>(text));
    }
    size_t size() const { return header.size() + body().size(); }
  };

  bool awaits_receive() const { return reading_payload_ && is_data() && !matched_; }
  bool is_data() const { return header_.type == FrameType::kData; }
  void Sent(size_t bytes, SteadyTime now);
  absl::Status ReadHeader(SteadyTime now, bool* would_block);
  absl::Status ReadControl(SteadyTime now, bool* would_block);
  absl::Status ReadData(SteadyTime now, bool* would_block);
  absl::Status Receive(std::span<std::byte> into, size_t* done, SteadyTime now, bool* would_block);
  absl::Status Lost(const std::string& how) const;

  const int peer_;
  FrameHandler* const handler_;
  UniqueFd fd_;
  bool left_ = false;

  std::deque<Outgoing> queue_;
  std::deque<std::span<std::byte>> posted_;
  uint64_t posted_count_ = 0;
  uint64_t completed_ = 0;

  FrameHeaderBytes header_bytes_{};
  FrameHeader header_;
  bool reading_payload_ = false;
  bool matched_ = false;  // the data frame has met its receive
  size_t done_ = 0;       // bytes of the header, or of the payload
  std::string text_;

  SteadyTime last_heard_{};
  SteadyTime last_progress_{};
  uint64_t bytes_sent_ = 0;
  uint64_t bytes_received_ = 0;
};

}  // namespace ringmaster::collectives::tcp

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_LINK_H_
