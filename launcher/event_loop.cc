#include "launcher/event_loop.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include <sys/eventfd.h>

#include "common/status.h"

namespace ringmaster::launcher {

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create() {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoStatus(errno, "eventfd");
  return std::unique_ptr<EventLoop>(new EventLoop(std::move(wake)));
}

void EventLoop::Watch(int fd, short events, std::function<void(short)> ready) {
  watched_[fd] = Watched{events, next_generation_++, std::move(ready)};
}

void EventLoop::Unwatch(int fd) {
  watched_.erase(fd);
}

EventLoop::TimerId EventLoop::After(Duration delay, std::function<void()> due) {
  const TimerId id = next_timer_++;
  timers_[id] = Timer{SystemClock().SteadyNow() + delay, std::move(due)};
  return id;
}

void EventLoop::Cancel(TimerId timer) {
  timers_.erase(timer);
}

void EventLoop::Post(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
  }
  const std::uint64_t one = 1;
  // An eventfd takes a write of one unless it is full, and then it is readable anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

void EventLoop::Quit() {
  Post([this] {
    std::lock_guard lock(mutex_);
    quit_ = true;
  });
}

void EventLoop::Run() {
  while (true) {
    RunPosted();
    RunTimers();
    {
      std::lock_guard lock(mutex_);
      if (quit_) return;
    }
    PollOnce();
  }
}

void EventLoop::RunPosted() {
  std::uint64_t count;
  while (::read(wake_.get(), &count, sizeof count) > 0) {
  }
  std::vector<std::function<void()>> work;
  {
    std::lock_guard lock(mutex_);
    work.swap(posted_);
  }
  for (const std::function<void()>& run : work) run();
}

void EventLoop::RunTimers() {
  const SteadyTime now = SystemClock().SteadyNow();
  std::vector<std::pair<SteadyTime, TimerId>> due;
  for (const auto& [id, timer] : timers_) {
    if (timer.due <= now) due.emplace_back(timer.due, id);
  }
  std::sort(due.begin(), due.end());
  for (const auto& [time, id] : due) {
    const auto found = timers_.find(id);
    if (found == timers_.end()) continue;  // cancelled by one before
    const std::function<void()> run = std::move(found->second.run);
    timers_.erase(found);
    run();
  }
}

int EventLoop::PollTimeout() const {
  if (timers_.empty()) return -1;
  SteadyTime next = SteadyTime::max();
  for (const auto& [id, timer] : timers_) next = std::min(next, timer.due);
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(next - SystemClock().SteadyNow()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

void EventLoop::PollOnce() {
  std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}};
  std::vector<std::uint64_t> generations{0};
  for (const auto& [fd, watched] : watched_) {
    fds.push_back({fd, watched.events, 0});
    generations.push_back(watched.generation);
  }
  if (::poll(fds.data(), fds.size(), PollTimeout()) <= 0) return;
  for (size_t i = 1; i < fds.size(); ++i) {
    if (fds[i].revents == 0) continue;
    const auto found = watched_.find(fds[i].fd);
    // Unwatched by a callback before, or closed and opened anew as something else.
    if (found == watched_.end() || found->second.generation != generations[i]) continue;
    const std::function<void(short)> ready = found->second.ready;
    ready(fds[i].revents);
  }
}

}  // namespace ringmaster::launcher
