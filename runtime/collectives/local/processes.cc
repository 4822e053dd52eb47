#include "runtime/collectives/local/processes.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common/exec_arguments.h"
#include "common/file.h"
#include "common/sha256.h"

namespace ringmaster::collectives::local {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::chrono::seconds kStartPatience{30};
constexpr std::chrono::seconds kGrace{5};  // to say what was wrong, and close
constexpr size_t kKeyBytes = 32;
constexpr size_t kLongestLine = 256;

absl::StatusOr<std::string> ReadLine(int fd, steady_clock::time_point deadline) {
  std::string line;
  while (line.size() < kLongestLine) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
    pollfd readable{fd, POLLIN, 0};
    const int ready = poll(&readable, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return absl::DeadlineExceededError("said nothing for 30 s");
    char c = 0;
    const ssize_t got = read(fd, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1) return absl::UnavailableError("ended before it had begun");
    if (c == '\n') return line;
    line += c;
  }
  return absl::DataLossError("sent a line without an end");
}

// The processes that were started and are not waited for yet. Kills what is left.
class Children {
 public:
  ~Children() {
    for (const Child& child : children_) {
      if (child.pid > 0) kill(child.pid, SIGKILL);
    }
    for (const Child& child : children_) {
      while (child.pid > 0 && waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }

  absl::Status Start(const std::vector<std::string>& arguments) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
      return ErrnoStatus(errno, "a socket for a rank");
    UniqueFd mine(pair[0]);
    const UniqueFd theirs(pair[1]);
    const std::vector<char*> argv = ExecArguments(arguments);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return ErrnoStatus(errno, "a process for a rank");
    if (pid == 0) Become(theirs.get(), parent, argv.data());
    children_.push_back({pid, std::move(mine), std::nullopt});
    return absl::OkStatus();
  }

  size_t size() const { return children_.size(); }
  int fd(size_t rank) const { return children_[rank].control.get(); }

  // The first exit code that is not 0, or 0. kDeadlineExceeded naming the rank that hangs.
  absl::StatusOr<int> WaitForAll(std::chrono::seconds patience) {
    int result = 0;
    std::optional<steady_clock::time_point> first_end;
    while (true) {
      const auto now = steady_clock::now();
      bool all_over = true;
      for (size_t rank = 0; rank < children_.size(); ++rank) {
        Child& child = children_[rank];
        const std::optional<int> code = Look(child, now);
        if (code && result == 0) result = *code;
        if (code && !first_end) first_end = now;
        if (child.pid < 0) continue;
        all_over = false;
        if (child.stopped && now - *child.stopped > patience)
          return Hangs(rank, fmt::format("has been stopped for {} s", patience.count()));
        if (first_end && now - *first_end > patience + kGrace)
          return Hangs(rank, fmt::format("goes on {} s after another rank has ended",
                                         (patience + kGrace).count()));
      }
      if (all_over) return result;
      WaitForAnEnd();
    }
  }

 private:
  struct Child {
    pid_t pid = -1;  // -1: it is over
    UniqueFd control;
    std::optional<steady_clock::time_point> stopped;  // since when
  };

  static absl::Status Hangs(size_t rank, const std::string& how) {
    return absl::DeadlineExceededError(fmt::format("rank {} {}; all are killed", rank, how));
  }

  // Its exit code, as a shell gives it, if it has ended since the last look.
  static std::optional<int> Look(Child& child, steady_clock::time_point now) {
    int status = 0;
    if (child.pid < 0 ||
        waitpid(child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) != child.pid) {
      return std::nullopt;
    }
    child.stopped.reset();
    if (WIFSTOPPED(status)) child.stopped = now;
    if (!WIFEXITED(status) && !WIFSIGNALED(status)) return std::nullopt;
    child.pid = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  // Until a child's end of its socket is closed; stops are looked for every 100 ms.
  void WaitForAnEnd() {
    std::vector<pollfd> ends;
    for (const Child& child : children_) {
      if (child.pid >= 0) ends.push_back({child.control.get(), 0, 0});
    }
    poll(ends.data(), ends.size(), 100);
  }

  [[noreturn]] static void Become(int control, pid_t parent, char* const* argv) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    // dup2 onto itself would leave close-on-exec set.
    const int copy = control == kControlFd ? dup(control) : control;
    if (dup2(copy, kControlFd) == kControlFd) execv("/proc/self/exe", argv);
    _exit(127);
  }

  std::vector<Child> children_;
};

}  // namespace

absl::StatusOr<int> RunRanks(int ranks, const std::vector<std::string>& arguments,
                             std::chrono::seconds patience) {
  Children children;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--rank", std::to_string(rank)});
    RM_RETURN_IF_ERROR(children.Start(all));
  }
  const auto deadline = steady_clock::now() + kStartPatience;
  std::string everybody;
  for (size_t rank = 0; rank < children.size(); ++rank) {
    auto address = ReadLine(children.fd(rank), deadline);
    if (!address.ok()) return Annotate(address.status(), fmt::format("rank {}", rank));
    everybody += *address + '\n';
  }
  const std::string key = RandomBytes(kKeyBytes);
  everybody += Hex({reinterpret_cast<const uint8_t*>(key.data()), key.size()}) + '\n';
  for (size_t rank = 0; rank < children.size(); ++rank) {
    RM_RETURN_IF_ERROR(WriteAll(children.fd(rank), std::as_bytes(std::span(everybody)),
                                fmt::format("rank {}", rank)));
  }
  return children.WaitForAll(patience);
}

absl::Status Meet(const std::string& address, int ranks, CommunicatorOptions* options) {
  const std::string line = address + '\n';
  RM_RETURN_IF_ERROR(WriteAll(kControlFd, std::as_bytes(std::span(line)), "the parent"));
  const auto deadline = steady_clock::now() + 2 * kStartPatience;
  for (int rank = 0; rank < ranks; ++rank) {
    RM_ASSIGN_OR_RETURN(std::string theirs, ReadLine(kControlFd, deadline));
    options->members.push_back({std::move(theirs), fmt::format("bench-{}", rank)});
  }
  RM_ASSIGN_OR_RETURN(options->key, ReadLine(kControlFd, deadline));
  return absl::OkStatus();
}

}  // namespace ringmaster::collectives::local
