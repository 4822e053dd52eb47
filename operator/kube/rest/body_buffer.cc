#include "operator/kube/rest/body_buffer.h"

#include <utility>

#include <fmt/format.h>

namespace ringmaster::kube::rest {

bool BodyBuffer::Append(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (end_) return false;
  // Before the bytes are taken, so that a senseless count cannot exhaust the memory.
  if (bytes.size() > max_bytes_ || bytes_.size() > max_bytes_ - bytes.size()) {
    EndLocked(
        absl::ResourceExhaustedError(fmt::format("the answer has more than {} bytes", max_bytes_)));
    return false;
  }
  bytes_.append(bytes);
  return true;
}

void BodyBuffer::Finish(absl::Status status) {
  const std::lock_guard lock(mutex_);
  EndLocked(std::move(status));
}

void BodyBuffer::Stop() {
  const std::lock_guard lock(mutex_);
  end_.reset();
  EndLocked(absl::CancelledError("the call was stopped"));
}

void BodyBuffer::EndLocked(absl::Status status) {
  if (end_) return;
  end_ = std::move(status);
  ended_.notify_all();
}

absl::StatusOr<std::string> BodyBuffer::TakeAll(SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  if (!ended_.wait_until(lock, deadline, [&] { return end_.has_value(); })) {
    return absl::DeadlineExceededError("the answer did not come in time");
  }
  if (!end_->ok()) return *end_;
  return std::exchange(bytes_, {});
}

}  // namespace ringmaster::kube::rest
