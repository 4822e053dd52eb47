#include "operator/node/process.h"

// The header of glibc 2.36 does not say that its functions are C.
extern "C" {
#include <sys/pidfd.h>
}

#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "common/children.h"
#include "common/contract.h"
#include "common/exec_arguments.h"
#include "common/status.h"

namespace ringmaster::node {
namespace {

constexpr Duration kKillPatience = std::chrono::seconds(5);
constexpr char kDefaultPath[] = "/usr/local/bin:/usr/bin:/bin";

// What went wrong in the child before exec, sent up a pipe that exec closes.
struct SpawnFailure {
  int error_number;
  enum Step { kDirectory, kLog, kExec } step;
};

std::string PathOf(const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    if (entry.starts_with("PATH=")) return entry.substr(5);
  }
  return kDefaultPath;
}

// The program's file, found in the parent because a child between fork and exec may only make
// system calls.
absl::StatusOr<std::string> FindProgram(const std::string& name, const ProcessSpec& spec) {
  if (name.find('/') != std::string::npos) return name;
  const std::string path = PathOf(spec.environment);
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find(':', start), path.size());
    const std::string candidate = path.substr(start, end - start) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    start = end + 1;
  }
  return absl::NotFoundError(fmt::format("{}: no such program in {}", name, path));
}

[[noreturn]] void FailChild(int report_fd, SpawnFailure::Step step) {
  const SpawnFailure failure{errno, step};
  (void)!::write(report_fd, &failure, sizeof failure);
  ::_exit(127);
}

// Runs in the child. Only async-signal-safe calls: other threads of the parent may have held any
// lock at the fork.
[[noreturn]] void BecomeProgram(const char* program, char* const* argv, char* const* environment,
                                const ProcessSpec& spec, pid_t parent, int lifeline_fd,
                                int report_fd) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // the parent died before the line above
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) ::signal(signal, SIG_DFL);
  if (!spec.directory.empty() && ::chdir(spec.directory.c_str()) != 0)
    FailChild(report_fd, SpawnFailure::kDirectory);
  const int null_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int log_fd = ::open(spec.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (null_fd < 0 || log_fd < 0) FailChild(report_fd, SpawnFailure::kLog);
  ::dup2(null_fd, STDIN_FILENO);
  ::dup2(log_fd, STDOUT_FILENO);
  ::dup2(log_fd, STDERR_FILENO);
  ::fcntl(lifeline_fd, F_SETFD, 0);  // the one descriptor that survives exec
  ::execve(program, argv, environment);
  FailChild(report_fd, SpawnFailure::kExec);
}

// Waits until the child has executed its program; what went wrong if it could not.
std::optional<SpawnFailure> AwaitExec(int report_fd) {
  SpawnFailure failure;
  ssize_t got;
  do {
    got = ::read(report_fd, &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof failure) return std::nullopt;
  return failure;
}

void Reap(pid_t pid) {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Whether an orphan that came to this process descends from the child with this mark. One that is
// ending has no environment any more, which older kernels show as empty and newer ones as an error:
// that says yes too, since all that is left to do is to reap it.
bool IsMarked(pid_t pid, const std::string& mark) {
  const auto environment = ReadFile(fmt::format("/proc/{}/environ", pid));
  return !environment.ok() || environment->empty() ||
         environment->find(mark + '\0') != std::string::npos;
}

absl::Status DescribeFailure(const SpawnFailure& failure, const ProcessSpec& spec,
                             const std::string& program) {
  switch (failure.step) {
    case SpawnFailure::kDirectory:
      return ErrnoStatus(failure.error_number, "working directory " + spec.directory);
    case SpawnFailure::kLog:
      return ErrnoStatus(failure.error_number, "log file " + spec.log_path);
    case SpawnFailure::kExec:
      break;
  }
  return ErrnoStatus(failure.error_number, program);
}

}  // namespace

struct ProcessSupervisor::Request {
  const ProcessSpec* spec;
  std::optional<absl::StatusOr<pid_t>> answer;
};

absl::StatusOr<std::unique_ptr<ProcessSupervisor>> ProcessSupervisor::Create(OnExit on_exit) {
  std::unique_ptr<ProcessSupervisor> supervisor(new ProcessSupervisor(std::move(on_exit)));
  supervisor->wake_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  int lifeline[2];
  if (!supervisor->wake_.valid() || ::pipe2(lifeline, O_CLOEXEC) != 0)
    return ErrnoStatus(errno, "process supervisor");
  supervisor->lifeline_read_.Reset(lifeline[0]);
  supervisor->lifeline_write_.Reset(lifeline[1]);
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return ErrnoStatus(errno, "process supervisor");
  supervisor->thread_ = std::thread([self = supervisor.get()] { self->Loop(); });
  return supervisor;
}

ProcessSupervisor::~ProcessSupervisor() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [pid, child] : children_) ::kill(-pid, SIGKILL);
  }
  if (thread_.joinable()) {
    Wake();
    thread_.join();
  }
}

absl::StatusOr<pid_t> ProcessSupervisor::Start(ProcessSpec spec) {
  spec.environment.push_back(fmt::format("{}={}", contract::kEnvLifelineFd, lifeline_read_.get()));
  Request request{&spec, std::nullopt};
  std::unique_lock lock(mutex_);
  if (stopping_) return absl::FailedPreconditionError("the process supervisor is stopping");
  requests_.push_back(&request);
  Wake();
  served_.wait(lock, [&] { return request.answer.has_value(); });
  return *request.answer;
}

void ProcessSupervisor::Signal(pid_t pid, int signal) {
  std::lock_guard lock(mutex_);
  const auto child = children_.find(pid);
  if (child != children_.end()) ::pidfd_send_signal(child->second.pidfd.get(), signal, nullptr, 0);
}

void ProcessSupervisor::SignalGroup(pid_t pid, int signal) {
  std::lock_guard lock(mutex_);
  if (children_.contains(pid)) ::kill(-pid, signal);
}

void ProcessSupervisor::Wake() {
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

void ProcessSupervisor::Loop() {
  while (true) {
    std::vector<pollfd> waits{{wake_.get(), POLLIN, 0}};
    {
      std::lock_guard lock(mutex_);
      if (stopping_ && children_.empty() && requests_.empty()) return;
      for (const auto& [pid, child] : children_) waits.push_back({child.pidfd.get(), POLLIN, 0});
    }
    ::poll(waits.data(), waits.size(), -1);
    uint64_t count = 0;
    (void)!::read(wake_.get(), &count, sizeof count);
    ServeRequests();
    WaitForChildren();
  }
}

void ProcessSupervisor::ServeRequests() {
  std::lock_guard lock(mutex_);
  for (Request* request : requests_) {
    request->answer = stopping_
                          ? absl::FailedPreconditionError("the process supervisor is stopping")
                          : Spawn(*request->spec);
  }
  requests_.clear();
  served_.notify_all();
}

void ProcessSupervisor::WaitForChildren() {
  struct Ended {
    pid_t pid;
    ProcessExit exit;
    std::string mark;
  };
  std::vector<Ended> ended;
  {
    std::lock_guard lock(mutex_);
    for (auto child = children_.begin(); child != children_.end();) {
      int status = 0;
      if (::waitpid(child->first, &status, WNOHANG) != child->first) {
        ++child;
        continue;
      }
      ::kill(-child->first, SIGKILL);  // what is left of its group
      const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      const int code = signal != 0 ? 128 + signal : WEXITSTATUS(status);
      ended.push_back({child->first, {code, signal}, std::move(child->second.mark)});
      child = children_.erase(child);
    }
  }
  for (const Ended& child : ended) {
    EndOrphansOf(child.mark);
    on_exit_(child.pid, child.exit);
  }
}

void ProcessSupervisor::EndOrphansOf(const std::string& mark) {
  KillChildren(kKillPatience, [&](pid_t pid) {
    {
      std::lock_guard lock(mutex_);
      if (children_.contains(pid)) return false;
    }
    return IsMarked(pid, mark);
  });
}

absl::StatusOr<pid_t> ProcessSupervisor::Spawn(const ProcessSpec& spec) {
  RM_ASSIGN_OR_RETURN(const std::string program, FindProgram(spec.argv.front(), spec));
  const std::vector<char*> argv = ExecArguments(spec.argv);
  std::string mark = fmt::format("{}={}-{}", contract::kEnvContainer, ::getpid(), ++next_child_);
  std::vector<std::string> marked = spec.environment;
  marked.push_back(mark);
  const std::vector<char*> environment = ExecArguments(marked);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
  UniqueFd report_read(report[0]);
  UniqueFd report_write(report[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return ErrnoStatus(errno, "fork");
  if (pid == 0) {
    BecomeProgram(program.c_str(), argv.data(), environment.data(), spec, parent,
                  lifeline_read_.get(), report_write.get());
  }
  report_write.Reset();
  if (const auto failure = AwaitExec(report_read.get())) {
    Reap(pid);
    return DescribeFailure(*failure, spec, program);
  }
  UniqueFd pidfd(::pidfd_open(pid, 0));
  if (!pidfd.valid()) {
    const absl::Status status = ErrnoStatus(errno, "pidfd_open");
    ::kill(-pid, SIGKILL);
    Reap(pid);
    return status;
  }
  children_.emplace(pid, Child{std::move(pidfd), std::move(mark)});
  return pid;
}

}  // namespace ringmaster::node
