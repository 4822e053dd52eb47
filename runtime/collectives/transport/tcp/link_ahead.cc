// What a link reads before anybody asks for it: while a rank waits for long, a peer that it holds
// back may have failed, and says so behind the data that it sent before.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>

#include "common/status.h"
#include "runtime/collectives/transport/tcp/link.h"

namespace ringmaster::collectives::tcp {
namespace {

constexpr size_t kReadBytes = 64 * 1024;

}  // namespace

// Where the peer has ended, what the kernel still has of it is the bound: it is read at once, as a
// link that is written to next would say less of the end than the peer's last words do.
absl::Status Link::ReadAhead(SteadyTime now) {
  if (ahead_.empty()) scanned_ = header_.length;
  ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<ptrdiff_t>(taken_));
  scanned_ -= taken_;
  taken_ = 0;
  const size_t gulp_ends = ahead_.size() + kAheadGulpBytes;
  while ((may_read_ahead() && ahead_.size() < gulp_ends) || (!leaves_ && Finds(POLLRDHUP))) {
    std::byte read[kReadBytes];
    size_t done = 0;
    const IoState state = ReceiveFromSocket(read, &done, now);
    const int error = errno;
    // All at once, as growing moves what is there: of megabytes that is long for who is to hear an
    // abort. Not for what is read in one step, as most is.
    const size_t size = ahead_.size() + done;
    if (!ahead_.empty() && size > ahead_.capacity())
      ahead_.reserve(std::max(size, kMostAheadBytes + kReadBytes));
    ahead_.insert(ahead_.end(), read, read + done);
    // What the peer said last tells more than that it is gone.
    RM_RETURN_IF_ERROR(ScanAhead());
    if (state == IoState::kWouldBlock || leaves_) return absl::OkStatus();
    if (state == IoState::kFailed) return Broken(error);
    if (state == IoState::kClosed) return Lost("it ended");
  }
  if (may_read_ahead()) unread_ = tls_ != nullptr;
  return absl::OkStatus();
}

absl::Status Link::ScanAhead() {
  FrameHeaderBytes bytes;
  while (scanned_ + bytes.size() <= ahead_.size()) {
    const std::byte* const frame = ahead_.data() + scanned_;
    std::copy_n(frame, bytes.size(), bytes.begin());
    RM_ASSIGN_OR_RETURN(const FrameHeader header, DecodeFrameHeader(bytes));
    const size_t end = scanned_ + bytes.size() + header.length;
    if (header.type == FrameType::kAbort) {
      if (end > ahead_.size()) return absl::OkStatus();  // the rest is on its way
      const auto* const text = reinterpret_cast<const char*>(frame + bytes.size());
      return handler_->OnControl(peer_, header, std::string(text, header.length));
    }
    scanned_ = end;
    leaves_ = header.type == FrameType::kGoodbye;
    if (leaves_) return absl::OkStatus();
  }
  return absl::OkStatus();
}

void Link::TakeAhead(std::span<std::byte> into, size_t* done) {
  const size_t bytes = std::min(into.size() - *done, ahead_.size() - taken_);
  if (bytes == 0) return;
  std::memcpy(into.data() + *done, ahead_.data() + taken_, bytes);
  *done += bytes;
  taken_ += bytes;
  bytes_moved_ += bytes;
  if (taken_ == ahead_.size()) DropAhead();
}

void Link::DropAhead() {
  ahead_ = {};
  taken_ = 0;
}

}  // namespace ringmaster::collectives::tcp
