#include "launcher/outbox.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::launcher {
namespace {

using rendezvous::v1::Event;
using ::testing::ElementsAre;

Event Ready(const std::string& address) {
  Event event;
  event.mutable_ready()->set_address(address);
  return event;
}

Event Progress(std::int64_t round, std::int64_t step) {
  Event event;
  event.set_round(round);
  event.mutable_progress()->set_step(step);
  return event;
}

Event Shard(std::int64_t round, std::int64_t step) {
  Event event;
  event.set_round(round);
  event.mutable_shard_durable()->set_step(step);
  return event;
}

std::vector<std::string> TakeAll(Outbox& outbox) {
  std::vector<std::string> told;
  while (const auto event = outbox.Next()) {
    if (event->has_ready()) told.push_back("ready " + event->ready().address());
    if (event->has_progress()) told.push_back("step " + std::to_string(event->progress().step()));
    if (event->has_shard_durable())
      told.push_back("shard " + std::to_string(event->shard_durable().step()));
    if (event->has_peer_lost()) told.push_back("lost");
  }
  return told;
}

TEST(OutboxTest, TellsEachEventOnce) {
  Outbox outbox;
  outbox.Add(Ready("a"));
  EXPECT_TRUE(outbox.HasNext());
  EXPECT_THAT(TakeAll(outbox), ElementsAre("ready a"));
  EXPECT_FALSE(outbox.HasNext());
}

TEST(OutboxTest, KeepsOnlyTheNewestProgress) {
  Outbox outbox;
  for (int step = 1; step <= 1000; ++step) outbox.Add(Progress(1, step));
  EXPECT_THAT(TakeAll(outbox), ElementsAre("step 1000"));
}

TEST(OutboxTest, TellsANewStreamEverythingThatStillHolds) {
  Outbox outbox;
  outbox.Add(Ready("a"));
  outbox.Add(Progress(1, 5));
  outbox.Add(Shard(1, 5));
  TakeAll(outbox);
  outbox.Add(Progress(1, 6));
  outbox.Rewind();
  EXPECT_THAT(TakeAll(outbox), ElementsAre("ready a", "shard 5", "step 6"));
}

TEST(OutboxTest, ForgetsARoundThatIsOverButNotTheWorker) {
  Outbox outbox;
  outbox.Add(Ready("a"));
  outbox.Add(Progress(1, 5));
  outbox.Add(Shard(1, 5));
  outbox.EnterRound(2);
  outbox.Add(Shard(2, 7));
  EXPECT_THAT(TakeAll(outbox), ElementsAre("ready a", "shard 7"));
}

TEST(OutboxTest, ForgetsShardsOfCheckpointsThatExist) {
  Outbox outbox;
  for (const int step : {10, 20, 30}) outbox.Add(Shard(1, step));
  outbox.ForgetShardsUpTo(20);
  EXPECT_THAT(TakeAll(outbox), ElementsAre("shard 30"));
}

TEST(OutboxTest, KeepsABoundedNumberOfShards) {
  Outbox outbox;
  for (int step = 1; step <= 500; ++step) outbox.Add(Shard(1, step));
  const auto told = TakeAll(outbox);
  ASSERT_EQ(told.size(), Outbox::kKeptOfAKind);
  EXPECT_EQ(told.back(), "shard 500");
}

TEST(OutboxTest, TellsAShardThatWasWrittenAgainOnce) {
  Outbox outbox;
  outbox.Add(Shard(1, 10));
  outbox.Add(Shard(1, 10));
  EXPECT_THAT(TakeAll(outbox), ElementsAre("shard 10"));
}

}  // namespace
}  // namespace ringmaster::launcher
