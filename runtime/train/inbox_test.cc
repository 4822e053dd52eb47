#include "runtime/train/inbox.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ringmaster::train {
namespace {

constexpr Duration kDeadline = std::chrono::seconds(30);
constexpr Duration kAtOnce = std::chrono::milliseconds(1);

Round Number(int64_t number) {
  return {.number = number};
}

TEST(InboxTest, HandsOutTheNewestRoundOnce) {
  Inbox inbox;
  inbox.Push(Number(1));
  inbox.Push(Number(2));
  EXPECT_EQ(inbox.WaitForRound(kDeadline), Wake::kRound);
  EXPECT_EQ(inbox.TakeRound()->number, 2);
  EXPECT_FALSE(inbox.TakeRound().has_value());
  EXPECT_EQ(inbox.WaitForRound(kAtOnce), Wake::kDeadline);
}

TEST(InboxTest, ARoundThatIsRepeatedChangesNothing) {
  Inbox inbox;
  inbox.Push(Number(3));
  inbox.TakeRound();
  inbox.Push(Number(3));
  inbox.Push(Number(2));
  EXPECT_FALSE(inbox.RoundIsOver());
  EXPECT_FALSE(inbox.TakeRound().has_value());
}

TEST(InboxTest, TellsTheMostUrgentThingFirst) {
  Inbox inbox;
  inbox.Push(Drain{.reason = "drain"});
  EXPECT_EQ(inbox.WaitForRound(kDeadline), Wake::kDrain);
  inbox.Push(Number(1));
  EXPECT_EQ(inbox.WaitForRound(kDeadline), Wake::kRound) << "a common step is possible again";
  inbox.Close("gone");
  EXPECT_EQ(inbox.WaitForRound(kDeadline), Wake::kClosed);
  inbox.Push(Stop{.reason = "stop"});
  EXPECT_EQ(inbox.WaitForRound(kDeadline), Wake::kStopped);
  EXPECT_EQ(inbox.reason(), "stop");
}

TEST(InboxTest, ADrainOfTheJobOutranksOneOfThisWorkerInAnyOrder) {
  Inbox inbox;
  EXPECT_FALSE(inbox.draining_alone());
  inbox.Push(Drain{.reason = "SIGTERM", .alone = true});
  EXPECT_TRUE(inbox.draining());
  EXPECT_TRUE(inbox.draining_alone());
  inbox.Push(Drain{.reason = "suspended"});
  EXPECT_FALSE(inbox.draining_alone());
  inbox.Push(Drain{.reason = "SIGTERM", .alone = true});
  EXPECT_TRUE(inbox.draining());
  EXPECT_FALSE(inbox.draining_alone());
}

TEST(InboxTest, ACheckpointRequestStaysUntilItIsMet) {
  Inbox inbox;
  EXPECT_FALSE(inbox.checkpoint_requested());
  inbox.Push(CheckpointNow{});
  inbox.Push(Number(1));
  inbox.TakeRound();
  EXPECT_TRUE(inbox.checkpoint_requested());
  inbox.CheckpointRequestIsMet();
  EXPECT_FALSE(inbox.checkpoint_requested());
}

TEST(InboxTest, InterruptsOnceWhenTheRoundIsOver) {
  Inbox inbox;
  inbox.Push(Number(1));
  inbox.TakeRound();
  std::vector<std::string> reasons;
  const Inbox::Interrupt interrupt(inbox, [&](const std::string& why) { reasons.push_back(why); });
  inbox.Push(CheckpointNow{});
  inbox.Push(Drain{.reason = "drain"});
  EXPECT_TRUE(reasons.empty()) << "the round goes on";
  inbox.Push(Number(2));
  inbox.Push(Stop{.reason = "stop"});
  EXPECT_EQ(reasons.size(), 1U);
}

TEST(InboxTest, InterruptsAtOnceWhenTheRoundIsOverAlready) {
  Inbox inbox;
  inbox.Close("gone");
  std::string reason;
  const Inbox::Interrupt interrupt(inbox, [&](const std::string& why) { reason = why; });
  EXPECT_EQ(reason, "gone");
}

TEST(InboxTest, WakesAWaitForCheckpoints) {
  Inbox inbox;
  std::thread operator_thread([&] { inbox.Push(CheckpointCommitted{}); });
  EXPECT_EQ(inbox.WaitForCommitted(kDeadline).size(), 1U);
  operator_thread.join();
  EXPECT_TRUE(inbox.TakeCommitted().empty());
}

}  // namespace
}  // namespace ringmaster::train
