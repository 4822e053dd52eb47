#include "launcher/event_loop.h"

#include <poll.h>
#include <string>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ringmaster::launcher {
namespace {

using std::chrono::milliseconds;

class EventLoopTest : public ::testing::Test {
 protected:
  EventLoopTest() : loop_(*EventLoop::Create()) {
    EXPECT_EQ(::pipe(pipe_), 0);
    loop_->After(std::chrono::seconds(30), [this] {
      ADD_FAILURE() << "nothing ended the loop";
      loop_->Quit();
    });
  }
  ~EventLoopTest() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }

  std::unique_ptr<EventLoop> loop_;
  int pipe_[2];
};

TEST_F(EventLoopTest, RunsWhatAnotherThreadPosts) {
  std::thread other([this] { loop_->Post([this] { loop_->Quit(); }); });
  loop_->Run();
  other.join();
}

TEST_F(EventLoopTest, RunsTimersInTheOrderOfTheirTimes) {
  std::string order;
  loop_->After(milliseconds(20), [&] {
    order += "b";
    loop_->Quit();
  });
  loop_->After(milliseconds(1), [&] { order += "a"; });
  loop_->Run();
  EXPECT_EQ(order, "ab");
}

TEST_F(EventLoopTest, DoesNotRunACancelledTimer) {
  EventLoop::TimerId doomed = 0;
  loop_->After(milliseconds(1), [&] { loop_->Cancel(doomed); });
  doomed = loop_->After(milliseconds(1), [] { ADD_FAILURE() << "was cancelled"; });
  loop_->After(milliseconds(5), [&] { loop_->Quit(); });
  loop_->Run();
}

TEST_F(EventLoopTest, CallsBackWhenADescriptorIsReadable) {
  loop_->Watch(pipe_[0], POLLIN, [this](short events) {
    EXPECT_NE(events & POLLIN, 0);
    loop_->Unwatch(pipe_[0]);
    loop_->Quit();
  });
  ASSERT_EQ(::write(pipe_[1], "x", 1), 1);
  loop_->Run();
}

TEST_F(EventLoopTest, LetsACallbackUnwatchAnotherThatIsReadyToo) {
  int other[2];
  ASSERT_EQ(::pipe(other), 0);
  ASSERT_EQ(::write(pipe_[1], "x", 1), 1);
  ASSERT_EQ(::write(other[1], "x", 1), 1);
  int calls = 0;
  const auto first_wins = [&](short) {
    ++calls;
    loop_->Unwatch(pipe_[0]);
    loop_->Unwatch(other[0]);
    loop_->Quit();
  };
  loop_->Watch(pipe_[0], POLLIN, first_wins);
  loop_->Watch(other[0], POLLIN, first_wins);
  loop_->Run();
  EXPECT_EQ(calls, 1);
  ::close(other[0]);
  ::close(other[1]);
}

}  // namespace
}  // namespace ringmaster::launcher
