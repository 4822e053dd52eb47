#include "operator/kube/rest/server_clock.h"

#include <gtest/gtest.h>

namespace ringmaster::kube::rest {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

// The time that the machine's clock shows at first: 2026-01-01T00:00:00Z.
constexpr char kNow[] = "Thu, 01 Jan 2026 00:00:00 GMT";
constexpr char kMinuteLater[] = "Thu, 01 Jan 2026 00:01:00 GMT";
constexpr char kHourLater[] = "Thu, 01 Jan 2026 01:00:00 GMT";
constexpr char kHourBefore[] = "Wed, 31 Dec 2025 23:00:00 GMT";

// A machine whose clock may be set.
class Machine : public FakeClock {
 public:
  Time Now() const override { return FakeClock::Now() + set_by_; }
  void Set(Duration by) { set_by_ += by; }

 private:
  Duration set_by_{0};
};

class ServerClockTest : public ::testing::Test {
 protected:
  // An answer that takes so long.
  void Answer(const char* date, Duration took = 10ms) {
    const SteadyTime asked = clock_.SteadyNow();
    machine_.Advance(took);
    clock_.Observe(date, asked);
  }
  Duration Ahead() const { return clock_.Now() - machine_.Now(); }

  Machine machine_;
  ServerClock clock_{machine_};
};

TEST_F(ServerClockTest, IsTheMachinesUntilAnAnswerHasCome) {
  machine_.Set(1h);
  EXPECT_EQ(Ahead(), 0s);
  EXPECT_EQ(clock_.SteadyNow(), machine_.SteadyNow());
}

TEST_F(ServerClockTest, StaysTheMachinesWhereADateCouldBeIts) {
  Answer(kNow);
  machine_.Advance(900ms);
  Answer(kNow, 80ms);
  EXPECT_EQ(Ahead(), 0s);
}

TEST_F(ServerClockTest, IsTheServersWithinASecondWhereThatIsAhead) {
  Answer(kHourLater);
  EXPECT_EQ(Ahead(), 1h - 10ms);
  machine_.Advance(24h);
  EXPECT_EQ(Ahead(), 1h - 10ms);
}

TEST_F(ServerClockTest, IsTheServersWithinASecondWhereThatIsBehind) {
  Answer(kHourBefore);
  EXPECT_EQ(Ahead(), -1h + 1s);
}

TEST_F(ServerClockTest, ASlowAnswerMovesItNoFurtherThanItMust) {
  Answer(kNow, 20s);  // the date may be of any moment in between
  EXPECT_EQ(Ahead(), 0s);
}

TEST_F(ServerClockTest, ServersThatDisagreeMoveItSlowlyAndNeverBack) {
  Answer(kNow);
  Time before = clock_.Now();
  for (int i = 0; i < 10; ++i) {
    Answer(i % 2 == 0 ? kMinuteLater : kNow, 1s);
    EXPECT_GT(clock_.Now(), before);
    before = clock_.Now();
  }
  EXPECT_LT(Ahead(), 500ms);
  EXPECT_GE(Ahead(), 0ms);
}

TEST_F(ServerClockTest, AServerWhoseClockIsSetIsFollowedAtFivePercent) {
  Answer(kNow);
  Answer(kMinuteLater, 20s);
  EXPECT_EQ(Ahead(), 1s);
}

TEST_F(ServerClockTest, DoesNotNoticeWhenTheMachinesClockIsSet) {
  Answer(kNow);
  machine_.Set(1h);
  EXPECT_EQ(Ahead(), -1h);
  Answer(kNow);
  EXPECT_EQ(Ahead(), -1h);
}

TEST_F(ServerClockTest, WhatIsNoDateSaysNothing) {
  for (const char* date : {"", "yesterday", "2026-01-01T01:00:00Z", "Thu, 01 Jan 2026 01:00:00 CET",
                           "Thu, 01 Jan 2026 01:00:00 GMT+1", "Thu, 41 Jan 2026 01:00:00 GMT"})
    Answer(date);
  EXPECT_EQ(Ahead(), 0s);
}

}  // namespace
}  // namespace ringmaster::kube::rest
