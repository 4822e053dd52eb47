#include "operator/kube/rest/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>

#include <pplx/threadpool.h>

namespace ringmaster::kube::rest {
namespace {

// 0: not ours to know.
std::atomic<int> pool_threads = 0;

struct Meeting {
  std::mutex mutex;
  std::condition_variable changed;
  int here = 0;       // guarded by mutex, as is the next
  bool over = false;  // nobody waits any more
};

// All threads at once: then none of them does anything else. False after the deadline.
bool Meet(int threads, SteadyTime deadline) {
  const auto meeting = std::make_shared<Meeting>();
  for (int i = 0; i < threads; ++i) {
    crossplat::threadpool::shared_instance().service().post([meeting, threads] {
      std::unique_lock lock(meeting->mutex);
      ++meeting->here;
      meeting->changed.notify_all();
      meeting->changed.wait(lock, [&] { return meeting->over || meeting->here == threads; });
    });
  }
  std::unique_lock lock(meeting->mutex);
  const bool met =
      meeting->changed.wait_until(lock, deadline, [&] { return meeting->here == threads; });
  meeting->over = true;
  meeting->changed.notify_all();
  return met;
}

}  // namespace

void SizeThreadPool(int threads) {
  static std::once_flag once;
  std::call_once(once, [threads] {
    try {
      crossplat::threadpool::initialize_with_threads(static_cast<std::size_t>(threads));
      pool_threads = threads;
    } catch (const std::exception&) {  // another user of the library was first
    }
  });
}

void SettleThreadPool(SteadyTime deadline) {
  constexpr int kMeetings =
      8;  // more than a request has continuations, each of which posts the next
  static std::mutex one_at_a_time;  // two meetings would wait for each other's threads
  const std::lock_guard lock(one_at_a_time);
  const int threads = pool_threads;
  for (int i = 0; i < kMeetings && threads > 0; ++i) {
    if (!Meet(threads, deadline)) return;
  }
}

}  // namespace ringmaster::kube::rest
