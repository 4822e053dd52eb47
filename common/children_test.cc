#include "common/children.h"

#include <csignal>
#include <poll.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "common/file.h"

namespace ringmaster {
namespace {

using namespace std::chrono_literals;

constexpr int kDeadlineMilliseconds = 30000;

// A shell script whose output is a pipe.
struct Script {
  explicit Script(const char* text) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    output.Reset(ends[0]);
    pid = ::fork();
    if (pid == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      ::execl("/bin/sh", "sh", "-c", text, nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
  }

  // One byte, or nothing at the end of the output; -1 when neither came in time.
  int Read() const {
    char byte;
    pollfd entry{output.get(), POLLIN, 0};
    return ::poll(&entry, 1, kDeadlineMilliseconds) <= 0
               ? -1
               : static_cast<int>(::read(output.get(), &byte, 1));
  }

  UniqueFd output;
  pid_t pid = -1;
};

class ChildrenTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }
};

TEST_F(ChildrenTest, KillsAlsoWhatTheyLeaveInOtherSessions) {
  const Script script("setsid sh -c 'printf x; sleep 1000' & wait");
  ASSERT_EQ(script.Read(), 1);
  KillChildren(30s, [](pid_t) { return true; });
  EXPECT_EQ(script.Read(), 0);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left, dead or alive
}

TEST_F(ChildrenTest, LeavesThoseThatWereNotChosen) {
  const Script chosen("printf x; exec sleep 1000");
  const Script other("printf x; exec sleep 1000");
  ASSERT_EQ(chosen.Read(), 1);
  ASSERT_EQ(other.Read(), 1);
  KillChildren(30s, [&](pid_t child) { return child == chosen.pid; });
  EXPECT_EQ(chosen.Read(), 0);
  EXPECT_EQ(::kill(other.pid, SIGKILL), 0);
  int status = 0;
  EXPECT_EQ(::waitpid(other.pid, &status, 0), other.pid);
  EXPECT_TRUE(WIFSIGNALED(status));
}

}  // namespace
}  // namespace ringmaster
