// The frames to and from one peer: queues of what is to be sent and received, the socket once there
// is one, and the shared memory where the two ranks have some. Data waits until it is settled which
// of the two carries it; all other frames always go over the socket.
//
// A link moves bytes and cuts them into frames; what a frame means is its handler's business. It
// reads ahead by one header only (and what TLS reads at once, where the connection is encrypted):
// data that no receive was posted for stays in the kernel, so a fast peer is held back by TCP. Who
// waits for long reads further ahead, up to a bound, to hear why the round ends, and all that has
// come where the peer has said its last (link_ahead.cc).
// One thread. All statuses are about the peer ("closed the connection ..."), for the caller to put
// a name before.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_LINK_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_LINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/file.h"
#include "common/kept_queue.h"
#include "runtime/collectives/transport/arrival.h"
#include "runtime/collectives/transport/frame.h"
#include "runtime/collectives/transport/shm/channel.h"
#include "runtime/collectives/transport/tcp/tls_stream.h"

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

// What carries the data between two ranks.
enum class Path { kUnsettled, kTcp, kSharedMemory };

class Link {
 public:
  // Of a socket, and of shared memory, at once; and of what is read ahead.
  static constexpr size_t kGulpBytes = size_t{1} << 20;
  static constexpr size_t kSharedGulpBytes = 256 * 1024;
  static constexpr size_t kAheadGulpBytes = 128 * 1024;
  // What is read ahead in all, as long as the peer is there.
  static constexpr size_t kMostAheadBytes = size_t{4} << 20;

  // `handler` must outlive the link.
  Link(int peer, FrameHandler* handler);

  // Where there is `tls`, it is over `fd`, and its handshake is done.
  void Attach(UniqueFd fd, SteadyTime now, std::unique_ptr<TlsStream> tls = nullptr);
  bool attached() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  bool left() const { return left_; }  // said goodbye

  Path path() const { return path_; }
  // Settles it. What was queued before goes over TCP when it is released, so that something can be
  // said first, and through shared memory with the next MoveShared.
  void UseTcp() { path_ = Path::kTcp; }
  void ReleaseHeld();
  void UseSharedMemory(std::unique_ptr<shm::Channel> channel, uint64_t round);
  shm::Channel& channel() { return *channel_; }
  const shm::Channel& channel() const { return *channel_; }

  // Drops the counts of the last operation, all of whose work must be done. `sequence` and `tag`
  // are what data bears in the one that begins; what comes with others is shown to the handler.
  void StartOperation(uint64_t sequence, uint64_t tag) {
    sequence_ = sequence;
    tag_ = tag;
    posted_count_ = 0;
    completed_ = 0;
  }
  // Drops everything posted, except that a frame whose first byte is sent is kept whole if
  // `keep_partial`.
  void DropWork(bool keep_partial);
  // Drops everything posted at once. Where a message is half sent nothing can follow it: closes.
  void Abandon();

  // Queues a frame; before there is a connection, too. `bytes` are not copied. A peer that has left
  // is told nothing.
  void QueueData(const FrameHeader& header, std::span<const std::byte> bytes);
  // Data of the operation in progress where the path is shared memory, from its byte `sent` on.
  // True: all of it was put there at once, so `bytes` may change.
  bool QueueShared(std::span<const std::byte> bytes, size_t sent = 0);
  // Whether the next piece of a message may be sent on this rank's board at once, and sends it: the
  // next `bytes` of a message of `length`, which lie there at `place`. What is left of the message
  // is for QueueShared.
  bool MaySendOnBoard();
  void SendOnBoard(size_t length, shm::BoardPlace place, size_t bytes);
  void QueueControl(const FrameHeader& header, std::string_view text);
  // What an Arrival is made of. The number of the receive, from 1 in each operation.
  template <typename Place>
  uint64_t PostReceive(const Place& place) {
    posted_.Add([&](Arrival& arrival) { std::construct_at(&arrival, place); });
    return ++posted_count_;
  }

  uint64_t completed_receives() const { return completed_; }
  bool has_queued() const { return !queue_.empty() || has_unsent(); }  // for the socket
  bool has_held() const { return !held_.empty(); }  // data for a path to come, or shared memory
  bool has_posted() const { return !posted_.empty(); }
  bool has_sends() const {  // data to be sent, either way
    return has_held() || (has_queued() && has_queued_data());
  }
  // Data is to be sent or received. Control frames are no work: no operation waits for them.
  bool has_work() const { return has_posted() || has_sends(); }
  // Through shared memory has come what was not taken out yet. (Over TCP no frame passes another.)
  bool HasArrived() const;

  // Writes to the socket and reads from it as much as goes without blocking, each at most about
  // kGulpBytes, so that in a long stream there is time for other peers, for an abort, and to pass
  // on what has arrived.
  absl::Status Write(SteadyTime now);
  absl::Status Read(SteadyTime now);
  // Both, in the order that two ranks want which exchange data: what is sent goes before what
  // has come is read, or the one that is late would only send when it had read what the other sent
  // early, and so be late again, each in turn. What the peer says besides data comes first of all:
  // one that says why it leaves is not there to be written to any more, and its kernel's answer to
  // that would take the words with it.
  absl::Status Move(SteadyTime now);

  // Reads beyond the data that waits for its receive, which must hold the peer back: up to
  // kAheadGulpBytes, so that there is time for other peers, and kMostAheadBytes in all, or whatever
  // has come where the peer writes nothing more. Only an abort goes to the handler out of its turn;
  // the rest waits for Read. An end of the connection without a goodbye before it is an error.
  absl::Status ReadAhead(SteadyTime now);

  // The same for the shared memory, which the path must be; no system calls, no look at the clock.
  // True: something moved.
  absl::StatusOr<bool> MoveShared();
  // Shows the handler what came through shared memory before a receive was posted for it.
  absl::Status InspectShared();
  // Books what moved since the last time.
  void NoteShared(SteadyTime now);

  // What to poll for. While a data frame waits for its receive only that the peer ends is news,
  // unless it is to be read ahead and there is room for more.
  short interest(bool reads_ahead) const;

  // A data frame whose header was read early has its receive now: Read goes on without any new byte
  // (the payload may be empty), or with those that were read ahead. Or TLS may have read more than
  // it was asked for: together with the end of its handshake, or with the last bytes of a gulp.
  bool unblocked() const {
    return unread_ || ((awaits_receive() || !ahead_.empty()) && !held_back());
  }
  // The peer has sent more than this rank has asked for, so nothing further is read from it.
  bool held_back() const { return awaits_receive() && posted_.empty(); }
  // There is room to hear whatever a peer that is held back says next.
  bool may_read_ahead() const { return !leaves_ && ahead_.size() - taken_ < kMostAheadBytes; }

  SteadyTime last_heard() const { return last_heard_; }        // any byte came, or reading went on
  SteadyTime last_progress() const { return last_progress_; }  // a byte of data came or went
  uint64_t bytes_sent() const { return bytes_sent_; }
  uint64_t bytes_received() const { return bytes_received_; }
  // Through the socket in both directions, headers and control frames included; what was read ahead
  // again when it is taken.
  uint64_t bytes_moved() const { return bytes_moved_; }

  // Nothing of what was queued is under way any more: the peer's kernel has all of it, or nobody is
  // there to take it. Does not block.
  bool Delivered(SteadyTime now);

  // Nothing is queued any more, ever: the peer hears that it has all, however much of it it has not
  // read yet.
  void EndWriting();

  // What was queued does not get through, as the peer's kernel has no room for it, or cannot any
  // more, as a message before it was cut off. False where the peer is gone. Does not block.
  bool IsStuck() const;

  // Reads and drops what has come, and closes: unread bytes would make the kernel reset the
  // connection and lose what was sent last.
  void Close();

 private:
  struct Outgoing {
    FrameHeaderBytes header{};
    std::string text{};                    // of a control frame
    std::span<const std::byte> payload{};  // of a data frame
    size_t sent = 0;
    bool control = false;  // nothing is lost where a peer that has left does not hear it

    std::span<const std::byte> body() const {
      return text.empty() ? payload : std::as_bytes(std::span<const char>(text));
    }
    size_t size() const { return header.size() + body().size(); }
  };

  struct Held {
    FrameHeader header;
    std::span<const std::byte> payload;
    size_t sent = 0;
  };

  bool awaits_receive() const { return reading_payload_ && is_data() && !matched_; }
  bool is_data() const { return header_.type == FrameType::kData; }
  bool has_unsent() const { return tls_ != nullptr && tls_->has_unsent(); }
  bool has_queued_data() const;
  // Whether one of these is so; POLLHUP and POLLERR are always among them.
  bool Finds(short events) const;
  void QueueFrame(const FrameHeader& header, std::string_view text,
                  std::span<const std::byte> payload, bool control);
  void Sent(size_t bytes, SteadyTime now);
  // Whether data may go into shared memory now, before anybody has looked up.
  bool MaySendAhead() const;
  bool SendShared(uint64_t sequence, uint64_t tag, std::span<const std::byte> payload,
                  size_t* sent);
  FrameHeader HeaderOf(const shm::Channel::Piece& piece) const;
  absl::Status ReceiveShared(const shm::Channel::Piece& piece);
  // Reads only until the payload of a data frame is next.
  absl::Status ReadWords(SteadyTime now);
  // Reads about `most` bytes at most, and no `data` unless that is true.
  absl::Status ReadSome(SteadyTime now, uint64_t most, bool data);
  absl::Status ReadHeader(SteadyTime now, bool* would_block);
  absl::Status ReadControl(SteadyTime now, bool* would_block);
  // Takes out what is no data: the peer does not want to hear it any more.
  void DropControl();
  absl::Status ReadData(SteadyTime now, uint64_t most, bool* would_block);
  absl::Status Combine(Arrival& arrival, size_t until, SteadyTime now, bool* would_block);
  absl::Status Receive(std::span<std::byte> into, size_t* done, SteadyTime now, bool* would_block);
  IoState ReceiveFromSocket(std::span<std::byte> into, size_t* done, SteadyTime now);
  void TakeAhead(std::span<std::byte> into, size_t* done);
  void DropAhead();
  absl::Status ScanAhead();
  absl::Status Lost(const std::string& how) const;
  // Of errno's value, or of TLS where it knows more.
  absl::Status Broken(int error) const;

  const int peer_;
  FrameHandler* const handler_;
  UniqueFd fd_;
  std::unique_ptr<TlsStream> tls_;  // null: the connection is not encrypted
  bool unread_ = false;             // there may be bytes that no event tells of
  bool unsent_data_ = false;        // some of what it has taken and not sent is no control frame
  bool left_ = false;
  bool cut_ = false;  // closed in the middle of a message

  Path path_ = Path::kUnsettled;
  std::unique_ptr<shm::Channel> channel_;
  uint64_t round_ = 0;  // of the channel
  KeptQueue<Held> held_;
  size_t sent_ahead_ = 0;   // through shared memory since MoveShared was called
  size_t shared_done_ = 0;  // bytes of the first receive that came through shared memory
  bool shared_matched_ = false;
  bool shared_moved_ = false;

  KeptQueue<Outgoing> queue_;
  KeptQueue<Arrival> posted_;
  std::vector<std::byte> staged_;  // what arrived of a message that is combined; made when needed
  size_t staged_bytes_ = 0;
  uint64_t sequence_ = 0;  // of the operation in progress,
  uint64_t tag_ = 0;       // and its hash
  uint64_t posted_count_ = 0;
  uint64_t completed_ = 0;

  FrameHeaderBytes header_bytes_{};
  FrameHeader header_;
  bool reading_payload_ = false;
  bool matched_ = false;  // the data frame has met its receive
  size_t done_ = 0;       // bytes of the header, or of the payload
  std::string text_;

  std::vector<std::byte> ahead_;  // read ahead: the payload of header_, whole frames, part of one
  size_t taken_ = 0;              // of it, from the front; less than all, or nothing is there
  size_t scanned_ = 0;            // where in it the first header begins that nobody has looked at
  bool leaves_ = false;           // it ends with the peer's goodbye

  SteadyTime last_heard_{};
  SteadyTime last_progress_{};
  uint64_t bytes_sent_ = 0;
  uint64_t bytes_received_ = 0;
  uint64_t bytes_moved_ = 0;
};

}  // namespace ringmaster::collectives::tcp

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_LINK_H_
