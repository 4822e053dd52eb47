#include "launcher/spawn.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "common/children.h"
#include "common/exec_arguments.h"
#include "common/status.h"

extern char** environ;

namespace ringmaster::launcher {
namespace {

constexpr Duration kKillPatience = std::chrono::seconds(5);

// The merged environment as "NAME=value" lines.
std::vector<std::string> MergedEnvironment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> lines;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line = *entry;
    if (!added.contains(std::string(line.substr(0, line.find('='))))) lines.emplace_back(line);
  }
  for (const auto& [name, value] : added) lines.push_back(name + "=" + value);
  return lines;
}

// The value of a variable in "NAME=value" lines; empty when it is not there.
std::string_view ValueOf(std::string_view name, const std::vector<std::string>& lines) {
  for (const std::string_view line : lines) {
    if (line.starts_with(name) && line.substr(name.size()).starts_with('='))
      return line.substr(name.size() + 1);
  }
  return {};
}

absl::StatusOr<std::string> FindProgram(const std::string& name, std::string_view path) {
  if (name.find('/') != std::string::npos) return name;
  std::string_view rest = path.empty() ? "/usr/local/bin:/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string candidate = fmt::format("{}/{}", rest.substr(0, colon), name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
  }
  return absl::NotFoundError(fmt::format("{}: not found in PATH", name));
}

// Everything that the child needs, made before the fork: after it only async-signal-safe calls are
// allowed, since other threads of ours may hold any lock.
struct Prepared {
  std::string program;
  std::vector<std::string> environment_lines;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  cpu_set_t cpus;
  bool bind = false;
  pid_t parent = 0;
  int output = -1;
  int failure = -1;  // the child writes its errno here when it cannot execute the program
};

[[noreturn]] void RunChild(const Prepared& prepared) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != prepared.parent) ::_exit(128 + SIGKILL);  // the parent died before the prctl
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &by_default, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  ::dup2(prepared.output, STDOUT_FILENO);
  ::dup2(prepared.output, STDERR_FILENO);
  if (prepared.bind) ::sched_setaffinity(0, sizeof prepared.cpus, &prepared.cpus);
  ::execve(prepared.program.c_str(), prepared.arguments.data(), prepared.environment.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(prepared.failure, &error, sizeof error);
  ::_exit(127);
}

struct Pipe {
  UniqueFd read, write;
};

absl::StatusOr<Pipe> MakePipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// Waits until the child has executed its program, and gives the errno of its failure.
absl::Status AwaitExec(Pipe& failure, pid_t pid, const std::string& program) {
  failure.write.Reset();
  int error = 0;
  ssize_t got;
  do {
    got = ::read(failure.read.get(), &error, sizeof error);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof error) return absl::OkStatus();
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  const std::string what = fmt::format("{}: {}", program, std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(what) : absl::PermissionDeniedError(what);
}

absl::StatusOr<Prepared> Prepare(const SpawnRequest& request) {
  Prepared prepared;
  prepared.environment_lines = MergedEnvironment(request.environment);
  RM_ASSIGN_OR_RETURN(prepared.program, FindProgram(request.command.front(),
                                                    ValueOf("PATH", prepared.environment_lines)));
  prepared.arguments = ExecArguments(request.command);
  prepared.environment = ExecArguments(prepared.environment_lines);
  prepared.parent = ::getpid();
  prepared.bind = !request.cpus.empty();
  CPU_ZERO(&prepared.cpus);
  for (const int cpu : request.cpus) CPU_SET(cpu, &prepared.cpus);
  return prepared;
}

}  // namespace

absl::StatusOr<Spawned> Spawn(const SpawnRequest& request) {
  RM_ASSIGN_OR_RETURN(Prepared prepared, Prepare(request));
  RM_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  RM_ASSIGN_OR_RETURN(Pipe failure, MakePipe());
  prepared.output = output.write.get();
  prepared.failure = failure.write.get();
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus(errno, "fork");
  if (pid == 0) RunChild(prepared);
  ::setpgid(pid, pid);  // also here, so that a signal sent at once finds the group
  RM_RETURN_IF_ERROR(AwaitExec(failure, pid, prepared.program));
  ::fcntl(output.read.get(), F_SETFL, O_NONBLOCK);
  return Spawned{pid, std::move(output.read)};
}

int ExitCodeOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void KillDescendants() {
  KillChildren(kKillPatience, [](pid_t) { return true; });
}

}  // namespace ringmaster::launcher
