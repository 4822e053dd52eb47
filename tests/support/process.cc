#include "tests/support/process.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/exec_arguments.h"

namespace ringmaster::testing {
namespace {

constexpr int kPatienceMilliseconds = 30000;

bool AwaitReadable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, kPatienceMilliseconds) > 0;
}

// Nothing is allocated here: another thread of the parent may have held any lock, the allocator's
// too (AddressSanitizer's does not let go of it in a child).
[[noreturn]] void Execute(char* const* arguments, char* const* environment,
                          const std::vector<int>& inherit, int output) {
  ::setpgid(0, 0);
  ::dup2(output, STDOUT_FILENO);
  for (const int fd : inherit) ::fcntl(fd, F_SETFD, 0);
  ::execvpe(arguments[0], arguments, environment);
  ::_exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& command,
                 const std::map<std::string, std::string>& environment,
                 const std::vector<int>& inherit) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) std::abort();
  output_.Reset(fds[0]);
  UniqueFd write(fds[1]);
  std::vector<std::string> lines;
  for (char** entry = environ; *entry != nullptr; ++entry) lines.emplace_back(*entry);
  for (const auto& [name, value] : environment) {
    std::erase_if(lines, [&](const std::string& line) { return line.starts_with(name + "="); });
    lines.push_back(name + "=" + value);
  }
  const std::vector<char*> arguments = ExecArguments(command);
  const std::vector<char*> variables = ExecArguments(lines);
  pid_ = ::fork();
  if (pid_ == 0) Execute(arguments.data(), variables.data(), inherit, write.get());
  ::setpgid(pid_, pid_);
}

Process::~Process() {
  if (exit_code_) return;
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::optional<std::string> Process::Line() {
  while (true) {
    const size_t newline = pending_.find('\n');
    if (newline != std::string::npos) {
      std::string line = pending_.substr(0, newline);
      pending_.erase(0, newline + 1);
      return line;
    }
    char buffer[4096];
    if (!AwaitReadable(output_.get())) return std::nullopt;
    const ssize_t got = ::read(output_.get(), buffer, sizeof buffer);
    if (got <= 0) return std::nullopt;
    pending_.append(buffer, got);
  }
}

bool Process::AwaitLine(const std::string& line) {
  while (const auto next = Line()) {
    if (*next == line) return true;
  }
  return false;
}

void Process::Signal(int signal) const {
  ::kill(pid_, signal);
}

std::optional<int> Process::Wait() {
  if (exit_code_) return exit_code_;
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!pidfd.valid() || !AwaitReadable(pidfd.get())) return std::nullopt;
  int status = 0;
  ::waitpid(pid_, &status, 0);
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return exit_code_;
}

bool AwaitEndOfFile(int fd) {
  char buffer[256];
  while (AwaitReadable(fd)) {
    if (::read(fd, buffer, sizeof buffer) <= 0) return true;
  }
  return false;
}

}  // namespace ringmaster::testing
