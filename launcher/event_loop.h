// The launcher's one thread: waits for descriptors and timers, and runs what other threads post.
// Everything that the launcher knows belongs to this thread, so nothing of it needs a lock.
//
// Thread safety: Post and Quit from any thread; the rest from the loop's thread, also from within
// its callbacks (which may unwatch any descriptor and cancel any timer, their own too).
#ifndef RINGMASTER_LAUNCHER_EVENT_LOOP_H_
#define RINGMASTER_LAUNCHER_EVENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/file.h"

namespace ringmaster::launcher {

class EventLoop {
 public:
  using TimerId = std::uint64_t;

  // kResourceExhausted when no descriptor is left.
  static absl::StatusOr<std::unique_ptr<EventLoop>> Create();

  // Calls `ready` with poll's revents whenever one of `events` (POLLIN, POLLOUT), an error or a
  // hang-up is there. Replaces an earlier watch of the descriptor, which stays the caller's.
  void Watch(int fd, short events, std::function<void(short)> ready);
  void Unwatch(int fd);

  // Calls `due` once. An id is never 0 and never used again; cancelling one that has run does
  // nothing.
  TimerId After(Duration delay, std::function<void()> due);
  void Cancel(TimerId timer);

  void Post(std::function<void()> work);

  // Runs until Quit.
  void Run();
  void Quit();

 private:
  struct Watched {
    short events = 0;
    std::uint64_t generation = 0;
    std::function<void(short)> ready;
  };
  struct Timer {
    SteadyTime due;
    std::function<void()> run;
  };

  explicit EventLoop(UniqueFd wake) : wake_(std::move(wake)) {}
  int PollTimeout() const;
  void RunPosted();
  void RunTimers();
  void PollOnce();

  const UniqueFd wake_;  // an eventfd
  std::map<int, Watched> watched_;
  std::uint64_t next_generation_ = 1;
  std::map<TimerId, Timer> timers_;
  TimerId next_timer_ = 1;

  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;  // guarded by mutex_
  bool quit_ = false;                          // guarded by mutex_
};

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_EVENT_LOOP_H_
