#include "launcher/program.h"

#include <cerrno>
#include <csignal>
#include <limits.h>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include <sys/ioctl.h>

#include "common/log.h"
#include "common/status.h"

namespace ringmaster::launcher {
namespace {

// How long the last output waits for a reader of ours that is slow.
constexpr int kDrainMilliseconds = 1000;
// Of output that never ends is passed on so much before the loop has its turn: heartbeats are due.
constexpr size_t kPumpBytes = 64 * 1024;

// Whether standard output takes PIPE_BUF bytes now: a blocked loop would miss its heartbeats.
bool OutputTakes(int wait_milliseconds) {
  pollfd entry{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&entry, 1, wait_milliseconds) > 0;
}

}  // namespace

Program::Program(EventLoop& loop, std::function<void(const ProgramEnd&)> ended,
                 std::function<std::int64_t()> oom_kills)
    : loop_(loop), ended_(std::move(ended)), oom_kills_(std::move(oom_kills)) {}

Program::~Program() {
  Signal(SIGKILL);
  loop_.Cancel(kill_timer_);
  if (output_.valid()) loop_.Unwatch(output_.get());
  loop_.Unwatch(STDOUT_FILENO);
}

absl::Status Program::Start(const SpawnRequest& request) {
  oom_kills_before_ = oom_kills_();  // it may be killed before we have our turn again
  RM_ASSIGN_OR_RETURN(Spawned spawned, Spawn(request));
  pid_ = spawned.pid;
  output_ = std::move(spawned.output);
  tail_.Clear();
  kill_at_ = SteadyTime::max();
  killed_ = false;
  WatchOutput();
  log::Info("program started", {{"command", request.command.front()}, {"pid", pid_}});
  return absl::OkStatus();
}

void Program::Signal(int signal) {
  if (!running()) return;
  if (signal == SIGKILL) killed_ = true;
  ::kill(-pid_, signal);
}

void Program::Stop(Duration grace) {
  Signal(SIGTERM);
  KillAfter(grace);
}

void Program::KillAfter(Duration delay) {
  const SteadyTime at = SystemClock().SteadyNow() + delay;
  if (!running() || at >= kill_at_) return;
  kill_at_ = at;
  loop_.Cancel(kill_timer_);
  kill_timer_ = loop_.After(delay, [this] {
    log::Warning("program did not end in its grace period: killed", {{"pid", pid_}});
    Signal(SIGKILL);
  });
}

void Program::WatchOutput() {
  loop_.Watch(output_.get(), POLLIN, [this](short) { PumpOutput(); });
}

// Passes on what is there, as far as our own output takes it; a reader of ours that does not read
// slows the program down, as it would without us, and us not at all.
void Program::PumpOutput() {
  size_t pumped = 0;
  while (OutputTakes(0)) {
    const size_t got = PumpOnce();
    pumped += got;
    if (got == 0 || pumped >= kPumpBytes) return;
  }
  loop_.Unwatch(output_.get());
  loop_.Watch(STDOUT_FILENO, POLLOUT, [this](short) {
    loop_.Unwatch(STDOUT_FILENO);
    if (output_.valid()) WatchOutput();
  });
}

// How many bytes; none when nothing is left for now, or for ever.
size_t Program::PumpOnce() {
  char buffer[PIPE_BUF];
  ssize_t got = 0;
  do {
    got = ::read(output_.get(), buffer, sizeof buffer);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) {
    if (got == 0 || errno != EAGAIN) loop_.Unwatch(output_.get());
    return 0;
  }
  tail_.Append(std::string_view(buffer, got));
  // Nobody reads our output any more: the lines are lost, but the program goes on.
  [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, buffer, got);
  return got;
}

// What the program itself has written is there by now. What it left behind outside of its process
// group may write on for ever.
void Program::DrainOutput() {
  int left = 0;
  if (::ioctl(output_.get(), FIONREAD, &left) != 0) return;
  while (left > 0 && OutputTakes(kDrainMilliseconds)) {
    const size_t got = PumpOnce();
    if (got == 0) return;
    left -= static_cast<int>(got);
  }
}

void Program::Reaped(pid_t pid, int wait_status) {
  if (pid != pid_) return;
  ::kill(-pid, SIGKILL);  // what it left behind in its group
  pid_ = -1;
  loop_.Cancel(kill_timer_);
  DrainOutput();
  loop_.Unwatch(output_.get());
  loop_.Unwatch(STDOUT_FILENO);
  output_.Reset();
  ProgramEnd end{ExitCodeOf(wait_status), tail_.Text()};
  end.out_of_memory =
      end.exit_code == 128 + SIGKILL && !killed_ && oom_kills_() > oom_kills_before_;
  if (end.out_of_memory) {
    if (!end.last_lines.empty()) end.last_lines += '\n';
    end.last_lines += "killed by the kernel: the container has reached its memory limit";
  }
  log::Info("program ended", {{"pid", pid}, {"exit_code", end.exit_code}});
  ended_(end);
}

}  // namespace ringmaster::launcher
