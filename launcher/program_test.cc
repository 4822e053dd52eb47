#include "launcher/program.h"

#include <csignal>
#include <memory>
#include <string>
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

}  // namespace
}  // namespace ringmaster::launcher
