#include "runtime/train/task_queue.h"

#include <new>
#include <utility>

namespace ringmaster::train {
namespace {

absl::Status Do(const TaskQueue::Task& task) {
  try {
    return task();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory while gradients were summed");
  }
}

}  // namespace

TaskQueue::TaskQueue() : thread_([this] { Work(); }) {}

TaskQueue::~TaskQueue() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void TaskQueue::Add(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.Add([&](Task& place) { place = std::move(task); });
  }
  changed_.notify_all();
}

absl::Status TaskQueue::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return tasks_.empty() && !working_; });
  return std::exchange(status_, absl::OkStatus());
}

void TaskQueue::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return over_ || !tasks_.empty(); });
    if (over_) return;
    const Task task = std::move(tasks_.front());
    tasks_.PopFront();
    if (!status_.ok()) {
      changed_.notify_all();
      continue;
    }
    working_ = true;
    lock.unlock();
    absl::Status status = Do(task);
    lock.lock();
    working_ = false;
    status_ = std::move(status);
    changed_.notify_all();
  }
}

}  // namespace ringmaster::train
