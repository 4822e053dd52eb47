// A thread that does one thing after another, in the order in which they were given to it.
#ifndef RINGMASTER_RUNTIME_TRAIN_TASK_QUEUE_H_
#define RINGMASTER_RUNTIME_TRAIN_TASK_QUEUE_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "common/kept_queue.h"

namespace ringmaster::train {

// Thread-safe.
class TaskQueue {
 public:
  // One that captures two words at most takes no memory.
  using Task = std::function<absl::Status()>;

  TaskQueue();
  // Drops what has not begun and waits for what has.
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  void Add(Task task);

  // Blocks until all tasks are done; the first error, behind which no task is begun. Then the queue
  // is as new.
  absl::Status Wait();

 private:
  void Work();

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  KeptQueue<Task> tasks_;
  bool working_ = false;
  bool over_ = false;
  absl::Status status_;

  std::thread thread_;  // last: it uses the others
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_TASK_QUEUE_H_
