#include "launcher/program.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

namespace ringmaster::launcher {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr seconds kPatience{30};

class ProgramTest : public ::testing::Test {
 protected:
  void Start(const std::string& script) {
    const absl::Status started = program_.Start({.command = {"sh", "-c", script}});
    ASSERT_TRUE(started.ok()) << started;
  }

  void StartNext() {
    if (next_.empty()) return;
    Start(std::exchange(next_, ""));
    ++oom_kills_;
  }

  // How it ended, or the last of so many starts. May be called once.
  ProgramEnd Wait(std::size_t ends = 1) {
    Reap(ends);
    loop_->After(kPatience, [this] { loop_->Quit(); });
    loop_->Run();
    EXPECT_EQ(ends_.size(), ends);
    return ends_.empty() ? ProgramEnd() : ends_.back();
  }

  // The launcher is told of children that have ended; this looks for them.
  void Reap(std::size_t ends) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid > 0) program_.Reaped(pid, status);
    if (ends_.size() == ends) return loop_->Quit();
    loop_->After(std::chrono::milliseconds(1), [this, ends] { Reap(ends); });
  }

  std::unique_ptr<EventLoop> loop_ = *EventLoop::Create();
  std::vector<ProgramEnd> ends_;
  std::string next_;            // the script that is started when the one before has ended
  std::int64_t oom_kills_ = 3;  // of programs before
  Program program_{*loop_,
                   [this](const ProgramEnd& end) {
                     ends_.push_back(end);
                     StartNext();
                   },
                   [this] { return oom_kills_; }};
};

TEST_F(ProgramTest, ASigkillWhileTheKernelKilledForWantOfMemoryIsSaidToBeThat) {
  Start("echo big; kill -KILL $$");
  ++oom_kills_;
  const ProgramEnd end = Wait();
  EXPECT_EQ(end.exit_code, 128 + SIGKILL);
  EXPECT_TRUE(end.out_of_memory);
  EXPECT_THAT(end.last_lines, HasSubstr("memory limit"));
}

TEST_F(ProgramTest, ASigkillFromSomebodyElseIsNotSaidToBeThat) {
  Start("kill -KILL $$");
  const ProgramEnd end = Wait();
  EXPECT_EQ(end.exit_code, 128 + SIGKILL);
  EXPECT_FALSE(end.out_of_memory);
}

TEST_F(ProgramTest, AnEndByItselfWhileAChildWasKilledForWantOfMemoryIsNotSaidToBeThat) {
  Start("exit 1");
  ++oom_kills_;
  EXPECT_FALSE(Wait().out_of_memory);
}

TEST_F(ProgramTest, WhatItWasKilledForByItsOwnLauncherIsNotTheKernelsDoing) {
  Start("sleep 100");
  ++oom_kills_;  // a child of it, say
  program_.KillAfter(Duration(0));
  const ProgramEnd end = Wait();
  EXPECT_EQ(end.exit_code, 128 + SIGKILL);
  EXPECT_FALSE(end.out_of_memory);
  EXPECT_THAT(end.last_lines, Not(HasSubstr("memory")));
}

TEST_F(ProgramTest, AnewStartForgetsThatTheOneBeforeWasKilled) {
  Start("sleep 100");
  program_.KillAfter(Duration(0));
  next_ = "kill -KILL $$";
  EXPECT_TRUE(Wait(/*ends=*/2).out_of_memory);
  EXPECT_FALSE(ends_[0].out_of_memory);
}

// What programs write goes through a pipe whose reader takes some kilobytes a millisecond: less
// than any of these programs writes.
class EndlessOutputTest : public ProgramTest {
 protected:
  EndlessOutputTest() {
    std::fflush(stdout);
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[1]);
    reader_ = std::thread([this, input = ends[0]] {
      char buffer[4096];
      for (ssize_t got = 1; got > 0; passed_ += got) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the slowness itself
        got = ::read(input, buffer, sizeof buffer);
      }
      ::close(input);
    });
  }
  ~EndlessOutputTest() override {
    std::fflush(stdout);
    ::dup2(output_.get(), STDOUT_FILENO);
    reader_.join();
  }

  std::atomic<ssize_t> passed_ = 0;

 private:
  const UniqueFd output_{::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)};
  std::thread reader_;
};

TEST_F(EndlessOutputTest, OfAProcessThatWasLeftBehindDoesNotHinderTheEnd) {
  Start("for i in 1 2 3 4; do setsid yes & done; exit 3");
  EXPECT_EQ(Wait().exit_code, 3);
}

TEST_F(EndlessOutputTest, LeavesTheLoopTimeForOtherThings) {
  Start("yes & yes & yes & yes & exec yes");
  loop_->After(std::chrono::milliseconds(50), [this] { program_.KillAfter(Duration(0)); });
  EXPECT_EQ(Wait().exit_code, 128 + SIGKILL);
}

// As above, of a reader that is as fast as can be: all lies in a pipe of a megabyte.
TEST_F(ProgramTest, PassesLongOutputOnInPartsBetweenWhichTheLoopHasItsTurn) {
  constexpr int kAll = 1 << 20;
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  std::fflush(stdout);
  const UniqueFd before(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  ::dup2(::fileno(file), STDOUT_FILENO);
  Start(
      "exec python3 -c 'import fcntl, os; fcntl.fcntl(1, 1031, 1 << 20); os.write(1, b\"y\" * (1 "
      "<< 20))'");
  siginfo_t ended{};
  EXPECT_EQ(::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT), 0);
  loop_->Post([this] { loop_->Quit(); });  // after one look at what can be read
  loop_->Run();
  const off_t at_once = ::lseek(::fileno(file), 0, SEEK_END);
  EXPECT_EQ(Wait().exit_code, 0);
  const off_t in_the_end = ::lseek(::fileno(file), 0, SEEK_END);
  ::dup2(before.get(), STDOUT_FILENO);
  std::fclose(file);
  EXPECT_GT(at_once, 0);
  EXPECT_LT(at_once, kAll / 4);
  EXPECT_EQ(in_the_end, kAll);
}

}  // namespace
}  // namespace ringmaster::launcher
