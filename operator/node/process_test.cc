#include "operator/node/process.h"

#include <chrono>
#include <future>
#include <poll.h>
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "common/file.h"
#include "common/status.h"
#include "common/temporary_folder.h"

namespace ringmaster::node {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

// Starts one shell script at a time and waits for its end.
class ProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto supervisor =
        ProcessSupervisor::Create([this](pid_t, ProcessExit exit) { ended_.set_value(exit); });
    ASSERT_TRUE(supervisor.ok());
    supervisor_ = *std::move(supervisor);
  }

  absl::StatusOr<pid_t> StartScript(const std::string& script,
                                    std::vector<std::string> environment = {}) {
    return supervisor_->Start({{"sh", "-c", script}, std::move(environment), "", log_});
  }
  ProcessExit WaitForEnd() {
    auto future = ended_.get_future();
    EXPECT_EQ(future.wait_for(30s), std::future_status::ready);
    return future.get();
  }
  // Waits until the log holds `text`; the script writes it when it is ready.
  bool LogHas(const std::string& text) {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    while (std::chrono::steady_clock::now() < deadline) {
      const auto log = ReadFile(log_);
      if (log.ok() && log->find(text) != std::string::npos) return true;
      std::this_thread::yield();
    }
    return false;
  }

  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
  const std::string log_ = folder_.path() / "log";
  std::promise<ProcessExit> ended_;
  std::unique_ptr<ProcessSupervisor> supervisor_;
};

TEST_F(ProcessTest, ReportsTheExitCodeAndKeepsTheOutput) {
  ASSERT_TRUE(StartScript("echo out; echo err >&2; exit 7").ok());
  EXPECT_EQ(WaitForEnd().exit_code, 7);
  EXPECT_EQ(ReadFile(log_).value(), "out\nerr\n");
}

TEST_F(ProcessTest, RunsInAProcessGroupOfItsOwn) {
  const auto pid = StartScript("cut -d' ' -f5 /proc/$$/stat");
  ASSERT_TRUE(pid.ok());
  EXPECT_EQ(WaitForEnd().exit_code, 0);
  EXPECT_EQ(ReadFile(log_).value(), std::to_string(*pid) + "\n");
}

TEST_F(ProcessTest, ReportsDeathBySignalAsAShellDoes) {
  ASSERT_TRUE(StartScript("kill -SEGV $$").ok());
  const ProcessExit exit = WaitForEnd();
  EXPECT_EQ(exit.signal, SIGSEGV);
  EXPECT_EQ(exit.exit_code, 128 + SIGSEGV);
}

TEST_F(ProcessTest, ChildSeesOnlyTheEnvironmentThatItWasGiven) {
  ASSERT_TRUE(StartScript("echo $GREETING ${HOME:-none}", {"GREETING=hello"}).ok());
  EXPECT_EQ(WaitForEnd().exit_code, 0);
  EXPECT_EQ(ReadFile(log_).value(), "hello none\n");
}

TEST_F(ProcessTest, ProgramThatIsNotThereIsNamed) {
  const auto pid = supervisor_->Start({{"no-such-program-here"}, {}, "", log_});
  EXPECT_EQ(pid.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(pid.status()), HasSubstr("no-such-program-here"));
}

TEST_F(ProcessTest, WorkingDirectoryThatIsNotThereIsNamed) {
  const auto pid = supervisor_->Start({{"sh", "-c", ":"}, {}, "/no/such/folder", log_});
  EXPECT_EQ(pid.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(pid.status()), HasSubstr("/no/such/folder"));
}

TEST_F(ProcessTest, GrandchildrenDieWithTheChild) {
  // The grandchild holds the write end of a pipe that nobody else has; it is gone when the pipe
  // ends.
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  ASSERT_TRUE(
      StartScript("sh -c 'while :; do read x < /dev/zero; done' & echo ready; exit 0").ok());
  ::close(pipe_ends[1]);
  EXPECT_EQ(WaitForEnd().exit_code, 0);
  char byte;
  EXPECT_EQ(::read(pipe_ends[0], &byte, 1), 0);
  ::close(pipe_ends[0]);
}

// Holds the write end of a pipe that nobody else has, in a session of its own: the read end comes
// to its end when the last of its processes is gone.
constexpr char kWithDaemon[] =
    "setsid sh -c 'sleep 1000 & echo ready; sleep 1000' & while :; do sleep 1000; done";

class DaemonTest : public ProcessTest {
 protected:
  absl::StatusOr<pid_t> StartWithDaemon() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    held_.Reset(ends[0]);
    auto pid = StartScript(kWithDaemon);
    ::close(ends[1]);
    EXPECT_TRUE(LogHas("ready"));
    return pid;
  }
  bool AllAreGone() {
    pollfd entry{held_.get(), POLLIN, 0};
    char byte;
    return ::poll(&entry, 1, 30000) > 0 && ::read(held_.get(), &byte, 1) == 0;
  }

  UniqueFd held_;
};

TEST_F(DaemonTest, DaemonOfAKilledChildDiesBeforeTheChildIsReported) {
  const auto pid = StartWithDaemon();
  ASSERT_TRUE(pid.ok());
  supervisor_->Signal(*pid, SIGKILL);
  EXPECT_EQ(WaitForEnd().signal, SIGKILL);
  EXPECT_TRUE(AllAreGone());
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // reaped, too
}

TEST_F(DaemonTest, DaemonOfAChildThatEndsByItselfDiesWithIt) {
  const auto pid = StartWithDaemon();
  ASSERT_TRUE(pid.ok());
  supervisor_->Signal(*pid, SIGTERM);
  WaitForEnd();
  EXPECT_TRUE(AllAreGone());
}

TEST_F(DaemonTest, DestroyingTheSupervisorKillsDaemonsToo) {
  ASSERT_TRUE(StartWithDaemon().ok());
  supervisor_.reset();
  EXPECT_TRUE(AllAreGone());
}

TEST_F(ProcessTest, SignalReachesTheChildAlone) {
  const auto pid = StartScript("trap 'echo got; exit 3' TERM; echo ready; while :; do :; done");
  ASSERT_TRUE(pid.ok());
  ASSERT_TRUE(LogHas("ready"));
  supervisor_->Signal(*pid, SIGTERM);
  EXPECT_EQ(WaitForEnd().exit_code, 3);
}

TEST_F(ProcessTest, DestroyingTheSupervisorKillsWhatRuns) {
  ASSERT_TRUE(StartScript("trap '' TERM; echo ready; while :; do :; done").ok());
  ASSERT_TRUE(LogHas("ready"));
  supervisor_.reset();
  EXPECT_EQ(WaitForEnd().signal, SIGKILL);
}

TEST_F(ProcessTest, ChildHoldsTheLifeline) {
  ASSERT_TRUE(StartScript("test -p /proc/self/fd/$RINGMASTER_LIFELINE_FD && echo alive").ok());
  EXPECT_EQ(WaitForEnd().exit_code, 0);
  EXPECT_EQ(ReadFile(log_).value(), "alive\n");
}

}  // namespace
}  // namespace ringmaster::node
