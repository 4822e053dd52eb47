#include "operator/kube/rest/run_program.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "common/exec_arguments.h"
#include "common/file.h"
#include "common/status.h"

extern char** environ;

namespace ringmaster::kube::rest {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kMaxOutput = std::size_t{1} << 20;
constexpr std::size_t kMaxError = std::size_t{16} << 10;
constexpr std::chrono::milliseconds kReapInterval{10};

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

// Holds back the signals that ask this process to end, for the calling thread and as long as it
// lives, and tells when one has come. It does not take them: who waits for them elsewhere gets them
// still, and without that they act when this goes.
class StopSignals {
 public:
  StopSignals() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action {};
      // One that is ignored, as nohup has it, asks for nothing.
      if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
        sigaddset(&signals, number);
      }
    }
    pthread_sigmask(SIG_BLOCK, &signals, &before_);
    fd_ = UniqueFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~StopSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Readable once one has come; -1, with the reason in errno, where the system gives none.
  int fd() const { return fd_.get(); }

 private:
  sigset_t before_{};
  UniqueFd fd_;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<std::string> Environment(const std::vector<std::pair<std::string, std::string>>& env) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced =
        std::any_of(env.begin(), env.end(), [&](const auto& entry) { return entry.first == name; });
    if (!replaced) variables.emplace_back(text);
  }
  for (const auto& [name, value] : env) variables.push_back(name + "=" + value);
  return variables;
}

absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& argv,
                            const std::vector<std::string>& environment, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  sigset_t none;
  sigset_t usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0].c_str(), &actions, &attributes,
                                 ExecArguments(argv).data(), ExecArguments(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return ErrnoStatus(error, argv[0]);
  return pid;
}

int Remaining(SteadyClock::time_point deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

// Reads what is there; false at the end of the output.
bool ReadSome(int fd, std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t count = read(fd, buffer.data(), buffer.size());
  if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

absl::Status Interrupted() {
  return absl::CancelledError("it was ended, as this program was asked to end");
}

// Until both outputs have ended.
absl::Status Collect(Pipe& out, Pipe& err, int stop, SteadyClock::time_point deadline,
                     ProgramOutput& output) {
  while (out.read.valid() || err.read.valid()) {
    std::array<pollfd, 3> polled = {pollfd{out.read.get(), POLLIN, 0},
                                    pollfd{err.read.get(), POLLIN, 0}, pollfd{stop, POLLIN, 0}};
    const int left = Remaining(deadline);
    if (left == 0) return absl::DeadlineExceededError("it did not end in time");
    if (poll(polled.data(), polled.size(), left) < 0 && errno != EINTR) {
      return ErrnoStatus(errno, "poll");
    }
    if (polled[2].revents != 0) return Interrupted();
    if (polled[0].revents != 0 && !ReadSome(out.read.get(), output.standard_output)) {
      out.read.Reset();
    }
    if (polled[1].revents != 0 && !ReadSome(err.read.get(), output.standard_error)) {
      err.read.Reset();
    }
    if (output.standard_output.size() > kMaxOutput) {
      return absl::ResourceExhaustedError("it printed more than 1 MiB");
    }
    if (output.standard_error.size() > 2 * kMaxError) {
      output.standard_error.erase(0, output.standard_error.size() - kMaxError);
    }
  }
  return absl::OkStatus();
}

std::optional<int> ExitCode(pid_t pid, int options) {
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(pid, &status, options);
  } while (ended < 0 && errno == EINTR);
  if (ended == 0) return std::nullopt;
  if (ended < 0) return 127;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// A program that has closed its outputs is about to end; its end has no descriptor to wait for.
absl::StatusOr<int> AwaitExit(pid_t pid, int stop, SteadyClock::time_point deadline) {
  while (true) {
    if (const auto code = ExitCode(pid, WNOHANG)) return *code;
    const int left = Remaining(deadline);
    if (left == 0) return absl::DeadlineExceededError("it did not end in time");
    pollfd polled{stop, POLLIN, 0};
    if (poll(&polled, 1, std::min<int>(left, kReapInterval.count())) > 0) return Interrupted();
  }
}

}  // namespace

absl::StatusOr<ProgramOutput> RunProgram(
    const std::vector<std::string>& argv,
    const std::vector<std::pair<std::string, std::string>>& env,
    std::chrono::milliseconds timeout) {
  const SteadyClock::time_point deadline = SteadyClock::now() + timeout;
  RM_ASSIGN_OR_RETURN(Pipe out, MakePipe());
  RM_ASSIGN_OR_RETURN(Pipe err, MakePipe());
  const StopSignals stop;
  if (stop.fd() < 0) return ErrnoStatus(errno, "signalfd");
  RM_ASSIGN_OR_RETURN(const pid_t pid,
                      Spawn(argv, Environment(env), out.write.get(), err.write.get()));
  out.write.Reset();
  err.write.Reset();
  ProgramOutput output;
  const absl::Status collected = Collect(out, err, stop.fd(), deadline, output);
  const absl::StatusOr<int> code =
      collected.ok() ? AwaitExit(pid, stop.fd(), deadline) : absl::StatusOr<int>(collected);
  if (!code.ok()) {
    kill(-pid, SIGKILL);
    ExitCode(pid, 0);
    return code.status();
  }
  output.exit_code = *code;
  return output;
}

}  // namespace ringmaster::kube::rest
