// Calls that run one after another, in the order in which they were pushed, on one thread that is
// started by the first; and the handles by which their results are awaited.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_CALL_QUEUE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_CALL_QUEUE_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/status.h"

namespace ringmaster::collectives {

// The result of a call that may still be to come. Copies share it; dropping them changes nothing
// about the call. Thread-safe.
class Handle {
 public:
  // Blocks until the call is done, and returns its result. Bounded as the call itself is.
  absl::Status Wait() const;

  bool Done() const;

  // The result; kUnavailable while it is not Done.
  absl::Status status() const;

 private:
  friend class CallQueue;
  struct State;
  explicit Handle(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

// Thread-safe.
class CallQueue {
 public:
  using Call = std::function<absl::Status()>;

  CallQueue() = default;
  // Runs what is queued first. Where a call held the last that needed the queue, this is called on
  // its own thread when nothing is queued any more, and does not wait for that.
  ~CallQueue();

  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // `owner` stands for whom the call belongs to, for the two below.
  Handle Push(const void* owner, Call call);

  // Whether nothing is queued or running.
  bool IsIdle() const { return pending_.load(std::memory_order_acquire) == 0; }
  bool HasCallsOf(const void* owner) const;

  // Block until no call is queued or running: any, or one of `owner`. Not to be called by a call.
  void WaitUntilIdle() const;
  void WaitForCallsOf(const void* owner) const;

  // Whether the caller is one of the queue's calls.
  bool IsThisThread() const;

 private:
  struct Entry {
    const void* owner;
    Call call;
    std::shared_ptr<Handle::State> state;
  };

  void Loop();

  mutable std::mutex mutex_;
  std::condition_variable pushed_;
  mutable std::condition_variable finished_;
  std::deque<Entry> entries_;        // guarded by mutex_; the first is running
  std::atomic<size_t> pending_ = 0;  // their number
  bool stopping_ = false;            // guarded by mutex_
  bool* gone_ = nullptr;             // of the thread: set when it has destroyed the queue
  std::thread thread_;               // guarded by mutex_; joined by the destructor
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_CALL_QUEUE_H_
