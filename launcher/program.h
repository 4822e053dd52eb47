// The program that a launcher runs: started, watched, stopped in two steps, its output passed on
// and its last lines kept. It may be started again after it has ended.
//
// Not thread-safe: belongs to the event loop's thread.
#ifndef RINGMASTER_LAUNCHER_PROGRAM_H_
#define RINGMASTER_LAUNCHER_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"
#include "launcher/event_loop.h"
#include "launcher/log_tail.h"
#include "launcher/oom_kills.h"
#include "launcher/spawn.h"

namespace ringmaster::launcher {

struct ProgramEnd {
  int exit_code = 0;  // 128+n for death by signal n
  std::string last_lines;
  // The kernel killed it, or a child of it, for that. Never said of one that this object has
  // killed, nor where the container is shared with others.
  bool out_of_memory = false;
};

class Program {
 public:
  // `loop` must outlive the program; `ended` is called once for each successful Start, when the
  // program is reaped, what it left of its process group is killed and its output is passed on.
  // `oom_kills` counts what the kernel has killed here for want of memory, as OwnOomKills does.
  Program(EventLoop& loop, std::function<void(const ProgramEnd&)> ended,
          std::function<std::int64_t()> oom_kills = OwnOomKills);
  ~Program();  // kills it

  // As Spawn. Only while not running.
  absl::Status Start(const SpawnRequest& request);
  bool running() const { return pid_ > 0; }

  // To its whole process group; does nothing when not running.
  void Signal(int signal);
  // SIGTERM now, SIGKILL after `grace` if it still runs. A later call may only bring the end
  // nearer.
  void Stop(Duration grace);
  // SIGKILL after `delay`, without a SIGTERM before.
  void KillAfter(Duration delay);

  // A child was reaped; the program takes it if it is its own.
  void Reaped(pid_t pid, int wait_status);

 private:
  static constexpr size_t kTailLines = 20;
  static constexpr size_t kTailLineBytes = 1000;

  void WatchOutput();
  void PumpOutput();
  size_t PumpOnce();
  void DrainOutput();

  EventLoop& loop_;
  const std::function<void(const ProgramEnd&)> ended_;
  const std::function<std::int64_t()> oom_kills_;
  pid_t pid_ = -1;
  UniqueFd output_;
  LogTail tail_{kTailLines, kTailLineBytes};
  EventLoop::TimerId kill_timer_ = 0;
  SteadyTime kill_at_{};
  std::int64_t oom_kills_before_ = 0;  // just before it started
  bool killed_ = false;                // by this object
};

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_PROGRAM_H_
