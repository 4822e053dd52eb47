#include "operator/rendezvous/greeters.h"

#include <utility>

namespace ringmaster::rendezvous {
namespace {

// They wait for the API server nearly all of their time.
constexpr int kThreads = 8;

}  // namespace

Greeters::Greeters() {
  for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { Run(); });
}

Greeters::~Greeters() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  posted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Greeters::Post(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  posted_.notify_one();
}

void Greeters::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    posted_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds goes without the lock
    lock.lock();
  }
}

}  // namespace ringmaster::rendezvous
