#include "operator/controller/work_queue.h"

#include <algorithm>

namespace ringmaster::controller {

WorkQueue::WorkQueue(const Clock& clock, Backoff backoff) : clock_(clock), backoff_(backoff) {}

void WorkQueue::Add(const ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  AddReady(key);
}

void WorkQueue::AddAfter(const ObjectKey& key, Duration delay) {
  const std::lock_guard lock(mutex_);
  if (delay.count() <= 0) {
    AddReady(key);
  } else {
    AddDelayed(key, delay);
  }
}

void WorkQueue::AddRateLimited(const ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  // Past 40 doublings any back-off is at its maximum; the bound keeps the shift defined.
  const int doublings = std::min(failures_[key]++, 40);
  const bool capped = backoff_.initial.count() > (backoff_.maximum.count() >> doublings);
  AddDelayed(key, capped ? backoff_.maximum : backoff_.initial * (std::int64_t{1} << doublings));
}

void WorkQueue::Forget(const ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  failures_.erase(key);
}

int WorkQueue::Failures(const ObjectKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = failures_.find(key);
  return it == failures_.end() ? 0 : it->second;
}

std::optional<ObjectKey> WorkQueue::TryGet() {
  const std::lock_guard lock(mutex_);
  return Pop();
}

std::optional<ObjectKey> WorkQueue::Get() {
  std::unique_lock lock(mutex_);
  while (!shut_down_) {
    if (auto key = Pop()) return key;
    Await(lock);
  }
  return std::nullopt;
}

void WorkQueue::Await(std::unique_lock<std::mutex>& lock) {
  if (delayed_.empty() || one_waits_until_due_) {
    ++sleepers_;
    changed_.wait(lock);
    --sleepers_;
    return;
  }
  one_waits_until_due_ = true;
  due_changed_.wait_for(lock, delayed_.begin()->first - clock_.SteadyNow());
  one_waits_until_due_ = false;
}

// One of those who wait. Who was woken already may be counted still: it wakes the next one itself
// where it leaves something (Pop).
void WorkQueue::Wake() {
  (sleepers_ > 0 ? changed_ : due_changed_).notify_one();
}

void WorkQueue::Done(const ObjectKey& key) {
  const std::lock_guard lock(mutex_);
  active_.erase(key);
  if (dirty_.contains(key)) {
    ready_.push_back(key);
    Wake();
  }
}

void WorkQueue::ShutDown() {
  const std::lock_guard lock(mutex_);
  shut_down_ = true;
  changed_.notify_all();
  due_changed_.notify_all();
}

std::size_t WorkQueue::Depth() const {
  const std::lock_guard lock(mutex_);
  return ready_.size();
}

std::optional<SteadyTime> WorkQueue::NextDue() const {
  const std::lock_guard lock(mutex_);
  if (delayed_.empty()) return std::nullopt;
  return delayed_.begin()->first;
}

// Whether it can be handed out from now on.
bool WorkQueue::PushReady(const ObjectKey& key) {
  if (shut_down_ || !dirty_.insert(key).second || active_.contains(key)) return false;
  ready_.push_back(key);
  return true;
}

void WorkQueue::AddReady(const ObjectKey& key) {
  if (PushReady(key)) Wake();
}

void WorkQueue::AddDelayed(const ObjectKey& key, Duration delay) {
  if (shut_down_) return;
  const SteadyTime due = clock_.SteadyNow() + delay;
  const auto [it, inserted] = due_.try_emplace(key, due);
  if (!inserted) {
    if (it->second <= due) return;
    delayed_.erase({it->second, key});
    it->second = due;
  }
  delayed_.emplace(due, key);
  if (delayed_.begin()->second != key) return;
  // The next to be due: who waits for that waits for another time, or somebody begins to.
  (one_waits_until_due_ ? due_changed_ : changed_).notify_one();
}

void WorkQueue::PromoteDue() {
  const SteadyTime now = clock_.SteadyNow();
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    const ObjectKey key = delayed_.begin()->second;
    delayed_.erase(delayed_.begin());
    due_.erase(key);
    PushReady(key);
  }
}

std::optional<ObjectKey> WorkQueue::Pop() {
  if (shut_down_) return std::nullopt;
  PromoteDue();
  if (ready_.empty()) return std::nullopt;
  ObjectKey key = std::move(ready_.front());
  ready_.pop_front();
  dirty_.erase(key);
  active_.insert(key);
  // For the next key that is ready, or to wait for the next that is due.
  if (!ready_.empty() || (!delayed_.empty() && !one_waits_until_due_)) Wake();
  return key;
}

}  // namespace ringmaster::controller
