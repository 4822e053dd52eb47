#include "runtime/collectives/call_queue.h"

#include <algorithm>
#include <utility>

namespace ringmaster::collectives {

struct Handle::State {
  mutable std::mutex mutex;
  mutable std::condition_variable became_done;
  bool done = false;    // guarded by mutex
  absl::Status status;  // guarded by mutex
};

absl::Status Handle::Wait() const {
  std::unique_lock lock(state_->mutex);
  state_->became_done.wait(lock, [&] { return state_->done; });
  return state_->status;
}

bool Handle::Done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->done;
}

absl::Status Handle::status() const {
  const std::lock_guard lock(state_->mutex);
  return state_->done ? state_->status : absl::UnavailableError("the operation is not done yet");
}

CallQueue::~CallQueue() {
  if (IsThisThread()) {
    *gone_ = true;
    thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  pushed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Handle CallQueue::Push(const void* owner, Call call) {
  Handle handle(std::make_shared<Handle::State>());
  {
    const std::lock_guard lock(mutex_);
    entries_.push_back({owner, std::move(call), handle.state_});
    pending_.store(entries_.size(), std::memory_order_release);
    if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  }
  pushed_.notify_one();
  return handle;
}

bool CallQueue::HasCallsOf(const void* owner) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.owner == owner; });
}

void CallQueue::WaitUntilIdle() const {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return entries_.empty(); });
}

void CallQueue::WaitForCallsOf(const void* owner) const {
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] {
    return std::none_of(entries_.begin(), entries_.end(),
                        [&](const Entry& entry) { return entry.owner == owner; });
  });
}

bool CallQueue::IsThisThread() const {
  const std::lock_guard lock(mutex_);
  return thread_.get_id() == std::this_thread::get_id();
}

void CallQueue::Loop() {
  bool gone = false;
  gone_ = &gone;
  std::unique_lock lock(mutex_);
  while (true) {
    pushed_.wait(lock, [&] { return stopping_ || !entries_.empty(); });
    if (entries_.empty()) return;
    const Entry& first = entries_.front();  // pushing more leaves it where it is
    lock.unlock();
    absl::Status status = first.call();
    lock.lock();
    // Done and no longer pending at once: whoever has waited for the handle may end the owner.
    Entry finished = std::move(entries_.front());
    entries_.pop_front();
    pending_.store(entries_.size(), std::memory_order_release);
    {
      const std::lock_guard state_lock(finished.state->mutex);
      finished.state->status = std::move(status);
      finished.state->done = true;
    }
    finished_.notify_all();
    lock.unlock();
    finished.state->became_done.notify_all();
    finished = {};  // what the call holds is let go without the lock
    if (gone) return;
    lock.lock();
  }
}

}  // namespace ringmaster::collectives
