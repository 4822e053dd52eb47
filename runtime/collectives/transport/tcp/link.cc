#include "runtime/collectives/transport/tcp/link.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <poll.h>
#include <utility>

#include <fmt/format.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "runtime/collectives/transport/tcp/socket.h"

namespace ringmaster::collectives::tcp {
namespace {

constexpr size_t kFramesPerWrite = 8;
constexpr size_t kStagedBytes = 512 * 1024;
constexpr size_t kMaxDrainBytes = size_t{1} << 20;

// In the kernel, of what was written: SIOCOUTQ: not acknowledged; SIOCOUTQNSD: not even sent.
int BytesLeft(int fd, unsigned long which) {
  int bytes = 0;
  return ioctl(fd, which, &bytes) == 0 ? bytes : 0;
}

}  // namespace

Link::Link(int peer, FrameHandler* handler) : peer_(peer), handler_(handler) {}

void Link::Attach(UniqueFd fd, SteadyTime now, std::unique_ptr<TlsStream> tls) {
  fd_ = std::move(fd);
  tls_ = std::move(tls);
  unread_ = tls_ != nullptr;
  last_heard_ = now;
}

void Link::DropWork(bool keep_partial) {
  const bool partial = keep_partial && !queue_.empty() && queue_.front().sent > 0;
  queue_.Shorten(partial ? 1 : 0);
  if (!keep_partial && tls_ != nullptr) tls_->DropUnsent();
  posted_.Clear();
  held_.Clear();
  staged_bytes_ = 0;
}

void Link::Abandon() {
  const bool half_sent = !queue_.empty() && queue_.front().sent > 0 && !queue_.front().control;
  queue_.EraseIf([](const Outgoing& frame) { return !frame.control; });
  posted_.Clear();
  held_.Clear();
  staged_bytes_ = 0;
  if (!half_sent) return;
  Close();
  cut_ = true;
}

void Link::ReleaseHeld() {
  for (size_t i = 0; i < held_.size(); ++i) QueueData(held_[i].header, held_[i].payload);
  held_.Clear();
}

void Link::UseSharedMemory(std::unique_ptr<shm::Channel> channel, uint64_t round) {
  path_ = Path::kSharedMemory;
  round_ = round;
  channel_ = std::move(channel);
}

void Link::QueueData(const FrameHeader& header, std::span<const std::byte> bytes) {
  if (path_ == Path::kTcp) return QueueFrame(header, "", bytes, /*control=*/false);
  held_.Add([&](Held& held) { held = {.header = header, .payload = bytes, .sent = 0}; });
}

void Link::QueueControl(const FrameHeader& header, std::string_view text) {
  if (left_) return;  // nobody is there to hear it, and its connection may be gone
  FrameHeader sized = header;
  const std::string_view body = text.substr(0, kMaxControlBytes);
  sized.length = body.size();
  QueueFrame(sized, body, {}, /*control=*/true);
}

void Link::QueueFrame(const FrameHeader& header, std::string_view text,
                      std::span<const std::byte> payload, bool control) {
  queue_.Add([&](Outgoing& frame) {
    frame.header = EncodeFrameHeader(header);
    frame.text.assign(text);
    frame.payload = payload;
    frame.sent = 0;
    frame.control = control;
  });
}

bool Link::has_queued_data() const {
  if (has_unsent() && unsent_data_) return true;
  return queue_.Any([](const Outgoing& frame) { return !frame.control; });
}

short Link::interest(bool reads_ahead) const {
  if (!attached()) return 0;
  short to_read = left_ ? 0 : POLLIN;
  if (held_back() && leaves_) {
    to_read = 0;
  } else if (held_back() && !(reads_ahead && may_read_ahead())) {
    to_read = POLLRDHUP;
  }
  return static_cast<short>(to_read | (has_queued() ? POLLOUT : 0));
}

absl::Status Link::Write(SteadyTime now) {
  const uint64_t before = bytes_moved_;
  while (attached() && has_queued() && bytes_moved_ - before < kGulpBytes) {
    iovec parts[2 * kFramesPerWrite];
    size_t count = 0;
    for (size_t i = 0; i < std::min(queue_.size(), kFramesPerWrite); ++i) {
      const Outgoing& frame = queue_[i];
      const size_t header_sent = std::min(frame.sent, frame.header.size());
      const std::span<const std::byte> header = std::span(frame.header).subspan(header_sent);
      const std::span<const std::byte> body = frame.body().subspan(frame.sent - header_sent);
      if (!header.empty()) parts[count++] = {const_cast<std::byte*>(header.data()), header.size()};
      if (!body.empty()) parts[count++] = {const_cast<std::byte*>(body.data()), body.size()};
    }
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t sent = tls_ == nullptr ? sendmsg(fd_.get(), &message, MSG_NOSIGNAL)
                                         : tls_->Write(std::span(parts, count));
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return absl::OkStatus();
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      // What the peer said last, if it did, tells more than the broken pipe.
      const absl::Status broken = Broken(errno);
      RM_RETURN_IF_ERROR(ReadSome(now, std::numeric_limits<uint64_t>::max(), /*data=*/true));
      // Its last word may stand behind data that is not posted yet: who only sends is done early.
      if (!left_ && held_back()) DropControl();
      const bool no_loss = queue_.empty() && !unsent_data_;
      return (left_ || held_back()) && no_loss ? absl::OkStatus() : broken;
    }
    Sent(static_cast<size_t>(sent), now);
    if (!has_unsent()) unsent_data_ = false;
  }
  return absl::OkStatus();
}

void Link::Sent(size_t bytes, SteadyTime now) {
  bytes_moved_ += bytes;
  while (bytes > 0) {
    Outgoing& frame = queue_.front();
    const size_t step = std::min(bytes, frame.size() - frame.sent);
    frame.sent += step;
    bytes -= step;
    if (!frame.payload.empty()) last_progress_ = now;
    if (!frame.control) unsent_data_ = true;
    if (frame.sent == frame.size()) {
      bytes_sent_ += frame.payload.size();
      queue_.PopFront();
    }
  }
}

absl::Status Link::Read(SteadyTime now) {
  return ReadSome(now, kGulpBytes, /*data=*/true);
}

absl::Status Link::ReadWords(SteadyTime now) {
  return ReadSome(now, kGulpBytes, /*data=*/false);
}

absl::Status Link::Move(SteadyTime now) {
  if (has_queued()) {
    if (!held_back()) RM_RETURN_IF_ERROR(ReadWords(now));
    RM_RETURN_IF_ERROR(Write(now));
  }
  return held_back() ? absl::OkStatus() : Read(now);
}

absl::Status Link::ReadSome(SteadyTime now, uint64_t most, bool data) {
  bool would_block = false;
  unread_ = false;
  for (const uint64_t before = bytes_moved_; attached() && !left_ && !would_block;) {
    const uint64_t moved = bytes_moved_ - before;
    if (moved >= most) {
      unread_ = tls_ != nullptr;
      break;
    }
    if (!reading_payload_) {
      RM_RETURN_IF_ERROR(ReadHeader(now, &would_block));
    } else if (is_data() && !data) {
      unread_ = tls_ != nullptr && !held_back();
      break;
    } else if (is_data()) {
      RM_RETURN_IF_ERROR(ReadData(now, most - moved, &would_block));
    } else {
      RM_RETURN_IF_ERROR(ReadControl(now, &would_block));
    }
  }
  return absl::OkStatus();
}

absl::Status Link::ReadHeader(SteadyTime now, bool* would_block) {
  RM_RETURN_IF_ERROR(Receive(header_bytes_, &done_, now, would_block));
  if (*would_block) return absl::OkStatus();
  RM_ASSIGN_OR_RETURN(header_, DecodeFrameHeader(header_bytes_));
  reading_payload_ = true;
  matched_ = false;
  done_ = 0;
  if (is_data() && path_ != Path::kTcp) {
    RM_RETURN_IF_ERROR(handler_->OnData(peer_, header_, std::nullopt));
    return absl::DataLossError("sent data over TCP, which is not what was settled");
  }
  if (is_data())
    return posted_.empty() ? handler_->OnData(peer_, header_, std::nullopt) : absl::OkStatus();
  text_.resize(header_.length);
  return absl::OkStatus();
}

absl::Status Link::ReadControl(SteadyTime now, bool* would_block) {
  RM_RETURN_IF_ERROR(Receive(std::as_writable_bytes(std::span(text_)), &done_, now, would_block));
  if (*would_block) return absl::OkStatus();
  reading_payload_ = false;
  done_ = 0;
  if (header_.type == FrameType::kGoodbye) {
    left_ = true;
    DropControl();
    DropAhead();  // nothing follows it
  }
  return handler_->OnControl(peer_, header_, text_);
}

void Link::DropControl() {
  queue_.EraseIf([](const Outgoing& frame) { return frame.control; });
}

absl::Status Link::ReadData(SteadyTime now, uint64_t most, bool* would_block) {
  if (posted_.empty()) {
    *would_block = true;
    return absl::OkStatus();
  }
  if (!matched_) {
    RM_RETURN_IF_ERROR(handler_->OnData(peer_, header_, posted_.front().size()));
    matched_ = true;
    last_heard_ = now;
  }
  const size_t before = done_;
  Arrival& arrival = posted_.front();
  const size_t until = done_ + std::min<uint64_t>(most, arrival.size() - done_);
  if (arrival.combines()) {
    RM_RETURN_IF_ERROR(Combine(arrival, until, now, would_block));
  } else {
    RM_RETURN_IF_ERROR(Receive(arrival.into().first(until), &done_, now, would_block));
  }
  if (done_ > before) last_progress_ = now;
  if (*would_block || done_ < arrival.size()) return absl::OkStatus();
  bytes_received_ += posted_.front().size();
  posted_.PopFront();
  ++completed_;
  reading_payload_ = false;
  done_ = 0;
  return absl::OkStatus();
}

// What is combined comes through a buffer that stays in the cache, and leaves it in whole elements:
// goes on until at least `until` bytes have left.
absl::Status Link::Combine(Arrival& arrival, size_t until, SteadyTime now, bool* would_block) {
  if (const size_t bytes = std::min(kStagedBytes, arrival.size()); staged_.size() < bytes)
    staged_.resize(bytes);
  while (!*would_block && done_ < until) {
    const size_t due = std::min(staged_.size(), arrival.size() - done_);
    RM_RETURN_IF_ERROR(Receive(std::span(staged_).first(due), &staged_bytes_, now, would_block));
    const size_t whole = arrival.WholeElements(staged_bytes_);
    arrival.Deliver(done_, std::span(staged_).first(whole));
    done_ += whole;
    staged_bytes_ -= whole;
    std::memmove(staged_.data(), staged_.data() + whole, staged_bytes_);
  }
  return absl::OkStatus();
}

absl::Status Link::Receive(std::span<std::byte> into, size_t* done, SteadyTime now,
                           bool* would_block) {
  if (!ahead_.empty()) TakeAhead(into, done);
  switch (ReceiveFromSocket(into, done, now)) {
    case IoState::kComplete:
      return absl::OkStatus();
    case IoState::kWouldBlock:
      *would_block = true;
      return absl::OkStatus();
    case IoState::kClosed:
      return Lost(done_ > 0 || reading_payload_ ? "it ended in the middle of a frame" : "it ended");
    case IoState::kFailed:
      return Broken(errno);
  }
  return absl::InternalError("unknown state of a socket");
}

IoState Link::ReceiveFromSocket(std::span<std::byte> into, size_t* done, SteadyTime now) {
  const size_t before = *done;
  const IoState state =
      tls_ == nullptr ? ReceiveInto(fd_.get(), into, done) : tls_->Read(into, done);
  // A record of TLS may come in many pieces: each is a sign of life.
  const size_t came = tls_ == nullptr ? *done - before : tls_->TakeReceived();
  if (came > 0) last_heard_ = now;
  bytes_moved_ += came;
  return state;
}

absl::Status Link::Lost(const std::string& how) const {
  return absl::UnavailableError(fmt::format("lost the connection: {}", how));
}

absl::Status Link::Broken(int error) const {
  if (tls_ == nullptr || tls_->error().empty()) return Lost(std::strerror(error));
  return absl::DataLossError(fmt::format("failed in TLS: {}", tls_->error()));
}

bool Link::Finds(short events) const {
  pollfd looked_at{fd_.get(), events, 0};
  return poll(&looked_at, 1, 0) > 0;
}

bool Link::Delivered(SteadyTime now) {
  if (!attached() || !Write(now).ok() || Finds(0)) return true;
  return !has_queued() && BytesLeft(fd_.get(), SIOCOUTQ) == 0;
}

void Link::EndWriting() {
  if (attached()) shutdown(fd_.get(), SHUT_WR);
}

bool Link::IsStuck() const {
  if (cut_) return true;
  if (!attached() || left_ || Finds(0)) return false;
  return has_queued() || BytesLeft(fd_.get(), SIOCOUTQNSD) > 0;
}

void Link::Close() {
  if (!attached()) return;
  std::byte sink[4096];
  for (size_t drained = 0; drained < kMaxDrainBytes;) {
    const ssize_t got = recv(fd_.get(), sink, sizeof(sink), 0);
    if (got <= 0) break;
    drained += static_cast<size_t>(got);
  }
  tls_.reset();
  fd_.Reset();
}

}  // namespace ringmaster::collectives::tcp
