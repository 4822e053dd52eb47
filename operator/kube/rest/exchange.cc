#include "operator/kube/rest/exchange.h"

#include <utility>

namespace ringmaster::kube::rest {

void Exchange::OnHead(ResponseHead head) {
  std::lock_guard lock(mutex_);
  head_ = std::move(head);
  head_came_.notify_all();
}

void Exchange::OnEnd(absl::Status status) {
  body_->Finish(status);
  std::lock_guard lock(mutex_);
  end_ = std::move(status);
  head_came_.notify_all();
  ended_.notify_all();
}

absl::StatusOr<ResponseHead> Exchange::AwaitHead(SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  if (!head_came_.wait_until(lock, deadline, [&] { return head_ || end_; })) {
    return absl::DeadlineExceededError("no answer came in time");
  }
  if (head_) return *head_;
  return end_->ok() ? absl::UnavailableError("the connection ended") : *end_;
}

bool Exchange::AwaitEnd(SteadyTime deadline) {
  std::unique_lock lock(mutex_);
  return ended_.wait_until(lock, deadline, [&] { return end_.has_value(); });
}

void Exchange::Cancel() {
  // In this order: a reader must learn of the stop before the library reports a broken connection.
  body_->Stop();
  cancel_.cancel();
}

}  // namespace ringmaster::kube::rest
