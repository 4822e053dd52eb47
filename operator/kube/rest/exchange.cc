#include "operator/kube/rest/exchange.h"

#include <algorithm>
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

void Exchanges::Add(const std::shared_ptr<Exchange>& exchange) {
  std::lock_guard lock(mutex_);
  if (exchanges_.size() >= sweep_at_) {
    std::erase_if(exchanges_, [](const auto& entry) { return entry.expired(); });
    sweep_at_ = std::max<std::size_t>(64, exchanges_.size() * 2);
  }
  exchanges_.push_back(exchange);
}

void Exchanges::CancelAll(SteadyTime deadline) {
  std::vector<std::shared_ptr<Exchange>> open;
  {
    std::lock_guard lock(mutex_);
    for (const auto& entry : exchanges_) {
      if (auto exchange = entry.lock()) open.push_back(std::move(exchange));
    }
  }
  for (const auto& exchange : open) exchange->Cancel();
  for (const auto& exchange : open) exchange->AwaitEnd(deadline);
}

}  // namespace ringmaster::kube::rest
