#include "operator/kube/rest/body_buffer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace ringmaster::kube::rest {

BodyBuffer::Appended BodyBuffer::Append(std::string_view bytes,
                                        const std::function<void()>& resume) {
  std::lock_guard lock(mutex_);
  if (end_) return Appended::kRefused;
  // Before the bytes are taken, so that a senseless count cannot exhaust the memory.
  const std::size_t limit =
      limits_.max_bytes != 0 ? limits_.max_bytes : limits_.max_line_bytes + limits_.pause_bytes;
  const std::size_t unread = bytes_.size() - taken_;
  if (bytes.size() > limit || unread > limit - bytes.size()) {
    EndLocked(limits_.max_bytes != 0
                  ? absl::ResourceExhaustedError(
                        fmt::format("the answer has more than {} bytes", limits_.max_bytes))
                  : absl::OutOfRangeError(
                        fmt::format("a line has more than {} bytes", limits_.max_line_bytes)),
              /*at_once=*/limits_.max_bytes != 0);
    return Appended::kRefused;
  }
  bytes_.append(bytes);
  changed_.notify_all();
  if (limits_.pause_bytes == 0 || unread + bytes.size() <= limits_.pause_bytes) {
    return Appended::kTaken;
  }
  // Without a whole line the reader could never make room.
  searched_ = std::min(bytes_.find('\n', searched_), bytes_.size());
  if (searched_ == bytes_.size()) return Appended::kTaken;
  resume_ = resume;
  return Appended::kPause;
}

void BodyBuffer::Finish(absl::Status status) {
  std::lock_guard lock(mutex_);
  EndLocked(std::move(status), /*at_once=*/false);
}

void BodyBuffer::EndLocked(absl::Status status, bool at_once) {
  if (end_) return;
  end_ = std::move(status);
  at_once_ = at_once;
  changed_.notify_all();
}

absl::StatusOr<std::string> BodyBuffer::TakeAll(SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_until(lock, deadline, [&] { return end_.has_value(); })) {
    return absl::DeadlineExceededError("the answer did not come in time");
  }
  if (!end_->ok()) return *end_;
  return std::exchange(bytes_, {});
}

absl::StatusOr<std::string> BodyBuffer::TakeLine(SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  std::optional<std::string> line;
  const bool ready = changed_.wait_until(lock, deadline, [&] {
    if (end_ && at_once_) return true;
    line = LineLocked();
    return line.has_value() || end_.has_value();
  });
  if (line) {
    ResumeLocked(lock);
    if (line->size() > limits_.max_line_bytes) {
      return absl::OutOfRangeError(
          fmt::format("a line has more than {} bytes", limits_.max_line_bytes));
    }
    return *std::move(line);
  }
  if (!ready) return absl::DeadlineExceededError("nothing came in time");
  if (end_->ok() && taken_ < bytes_.size()) {
    std::string rest = bytes_.substr(taken_);
    taken_ = searched_ = bytes_.size();
    return rest;
  }
  return end_->ok() ? absl::UnavailableError("the stream ended") : *end_;
}

bool BodyBuffer::IsExhausted() {
  std::lock_guard lock(mutex_);
  return end_ && end_->ok() && taken_ == bytes_.size();
}

std::optional<std::string> BodyBuffer::LineLocked() {
  searched_ = std::min(bytes_.find('\n', searched_), bytes_.size());
  if (searched_ == bytes_.size()) return std::nullopt;
  std::string line = bytes_.substr(taken_, searched_ - taken_);
  taken_ = ++searched_;
  // Moves the rest to the front only when that is cheaper than what was read.
  if (taken_ * 2 >= bytes_.size()) {
    bytes_.erase(0, taken_);
    taken_ = searched_ = 0;
  }
  return line;
}

void BodyBuffer::ResumeLocked(std::unique_lock<std::mutex>& lock) {
  if (!resume_ || bytes_.size() - taken_ > limits_.pause_bytes) return;
  const auto resume = std::exchange(resume_, nullptr);
  lock.unlock();
  resume();
  lock.lock();
}

void BodyBuffer::Stop() {
  std::unique_lock lock(mutex_);
  end_ = absl::CancelledError("the stream was stopped");
  at_once_ = true;
  changed_.notify_all();
  if (!resume_) return;
  const auto resume = std::exchange(resume_, nullptr);
  lock.unlock();
  resume();
}

}  // namespace ringmaster::kube::rest
