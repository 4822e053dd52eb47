#include "runtime/train/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "ringmaster/rendezvous/v1/channel.pb.h"

namespace ringmaster::train {
namespace {

namespace v1 = rendezvous::v1;
using ::testing::HasSubstr;

v1::ToTrainer RoundOfTwo() {
  v1::ToTrainer message;
  v1::Round& round = *message.mutable_command()->mutable_round();
  round.set_number(7);
  round.set_rank(1);
  round.set_key("secret");
  round.set_shards(8);
  for (int rank = 0; rank < 2; ++rank) {
    v1::Member& member = *round.add_members();
    member.set_rank(rank);
    member.set_pod_uid("uid-" + std::to_string(rank));
    member.set_address("127.0.0.1:" + std::to_string(7000 + rank));
  }
  v1::CheckpointRef& ref = *round.add_checkpoints();
  ref.set_step(20);
  ref.set_round(6);
  ref.set_world_size(3);
  ref.set_digest("abc");
  return message;
}

v1::Event Decode(int64_t round, const Event& event) {
  v1::FromTrainer message;
  EXPECT_TRUE(message.ParseFromString(std::string(EventEncoder().Encode(round, event))));
  return message.event();
}

TEST(ProtocolTest, ReadsARound) {
  const auto command = DecodeCommand(RoundOfTwo().SerializeAsString());
  ASSERT_TRUE(command.ok()) << command.status();
  const Round& round = std::get<Round>(command->value());
  EXPECT_EQ(round.number, 7);
  EXPECT_EQ(round.rank, 1);
  EXPECT_EQ(round.key, "secret");
  EXPECT_EQ(round.shards, 8);
  ASSERT_EQ(round.members.size(), 2U);
  EXPECT_EQ(round.members[1].address, "127.0.0.1:7001");
  EXPECT_EQ(round.members[1].pod_uid, "uid-1");
  ASSERT_EQ(round.checkpoints.size(), 1U);
  EXPECT_EQ(round.checkpoints[0],
            (checkpoint::CheckpointRef{.id = {.step = 20, .round = 6, .world_size = 3},
                                       .digest = "abc"}));
}

TEST(ProtocolTest, RefusesARoundThatCannotBe) {
  v1::ToTrainer message = RoundOfTwo();
  message.mutable_command()->mutable_round()->set_rank(2);
  EXPECT_THAT(Message(DecodeCommand(message.SerializeAsString()).status()),
              HasSubstr("rank 2 is not one of its 2 members"));
  message = RoundOfTwo();
  message.mutable_command()->mutable_round()->mutable_members(0)->set_rank(1);
  EXPECT_THAT(Message(DecodeCommand(message.SerializeAsString()).status()),
              HasSubstr("not in the order of ranks"));
  EXPECT_FALSE(DecodeCommand("\xff garbage").ok());
}

TEST(ProtocolTest, ReadsEveryOtherCommand) {
  const auto read = [](const v1::ToTrainer& message) {
    return DecodeCommand(message.SerializeAsString()).value();
  };
  v1::ToTrainer message;
  EXPECT_FALSE(read(message).has_value()) << "of a kind that is not known";
  message.mutable_drain()->set_reason("SIGTERM");
  EXPECT_EQ(std::get<Drain>(read(message).value()).reason, "SIGTERM");
  EXPECT_TRUE(std::get<Drain>(read(message).value()).alone);
  message.mutable_command()->mutable_drain()->set_reason("suspended");
  EXPECT_EQ(std::get<Drain>(read(message).value()).reason, "suspended");
  EXPECT_FALSE(std::get<Drain>(read(message).value()).alone);
  message.mutable_command()->mutable_stop()->set_reason("deleted");
  EXPECT_EQ(std::get<Stop>(read(message).value()).reason, "deleted");
  message.mutable_command()->mutable_checkpoint_now();
  EXPECT_TRUE(std::holds_alternative<CheckpointNow>(read(message).value()));
  v1::CheckpointCommitted& committed = *message.mutable_command()->mutable_checkpoint_committed();
  committed.mutable_checkpoint()->set_step(30);
  committed.add_dropped()->set_step(10);
  const auto decoded = std::get<CheckpointCommitted>(read(message).value());
  EXPECT_EQ(decoded.checkpoint.id.step, 30);
  ASSERT_EQ(decoded.dropped.size(), 1U);
  EXPECT_EQ(decoded.dropped[0].id.step, 10);
}

TEST(ProtocolTest, WritesWhatAnEvaluationMeasured) {
  const Evaluation evaluation{.step = 5, .loss = 0.5, .accuracy = 0.9, .perplexity = 1.6};
  const v1::Event event = Decode(3, Progress{.step = 6, .evaluation = evaluation});
  const v1::Evaluation& written = event.progress().evaluation();
  EXPECT_EQ(event.progress().accuracy(), 0.9);
  EXPECT_EQ(written.step(), 5);
  EXPECT_EQ(written.loss(), 0.5);
  EXPECT_EQ(written.perplexity(), 1.6);
  EXPECT_FALSE(written.has_top5_accuracy());
  EXPECT_FALSE(written.has_auroc());
  EXPECT_FALSE(Decode(3, Progress{}).progress().has_evaluation());
  EXPECT_FALSE(Decode(3, Finished{}).finished().has_evaluation());
  const v1::Event end = Decode(3, Finished{.evaluation = evaluation,
                                           .stopped_early = "why",
                                           .labels = {{"Edema", 0.75}, {"Hernia", {}}}});
  ASSERT_EQ(end.finished().labels_size(), 2);
  EXPECT_EQ(end.finished().labels(0).name(), "Edema");
  EXPECT_EQ(end.finished().labels(0).auroc(), 0.75);
  EXPECT_FALSE(end.finished().labels(1).has_auroc());
  EXPECT_EQ(end.finished().evaluation().loss(), 0.5);
  EXPECT_EQ(end.finished().accuracy(), 0.9);
  EXPECT_EQ(end.finished().stopped_early(), "why");
  EXPECT_FALSE(Decode(3, ShardDurable{}).shard_durable().has_metric_value());
  EXPECT_EQ(Decode(3, ShardDurable{.metric_value = 0.0}).shard_durable().metric_value(), 0);
  EXPECT_TRUE(Decode(3, ShardDurable{.metric_value = 0.0}).shard_durable().has_metric_value());
}

TEST(ProtocolTest, SaysNothingOfTheEventsBefore) {
  EventEncoder encoder;
  const auto decode = [&](const Event& event) {
    v1::FromTrainer message;
    EXPECT_TRUE(message.ParseFromString(std::string(encoder.Encode(3, event))));
    return message.event();
  };
  EXPECT_TRUE(decode(Progress{.step = 6, .evaluation = Evaluation{}}).progress().has_evaluation());
  EXPECT_FALSE(decode(Progress{.step = 7}).progress().has_evaluation());
  EXPECT_EQ(decode(Progress{}).progress().step(), 0);
  const Finished two{.labels = {{"Edema", 0.75}, {"Hernia", {}}}};
  EXPECT_EQ(decode(two).finished().labels_size(), 2);
  EXPECT_EQ(decode(two).finished().labels_size(), 2);
  EXPECT_TRUE(decode(ShardDurable{.metric_value = 0.5}).shard_durable().has_metric_value());
  EXPECT_FALSE(decode(ShardDurable{}).shard_durable().has_metric_value());
  EXPECT_EQ(decode(Progress{.step = 8}).progress().step(), 8);
}

TEST(ProtocolTest, WritesEveryEventWithItsRound) {
  EXPECT_EQ(Decode(3, Ready{.address = "a:1", .parameters = 9}).ready().address(), "a:1");
  EXPECT_EQ(Decode(3, Ready{}).round(), 3);
  EXPECT_EQ(Decode(3, Progress{.step = 5}).progress().step(), 5);
  EXPECT_LT(Decode(3, Progress{}).progress().accuracy(), 0);
  EXPECT_EQ(Decode(3, ShardDurable{.step = 5, .digest = "d"}).shard_durable().digest(), "d");
  EXPECT_EQ(Decode(3, CheckpointFailed{5, "full"}).checkpoint_failed().message(), "full");
  EXPECT_EQ(Decode(3, CheckpointRejected{5, "torn"}).checkpoint_rejected().message(), "torn");
  EXPECT_EQ(Decode(3, PeerLost{2, "gone"}).peer_lost().rank(), 2);
  EXPECT_EQ(Decode(3, Finished{.weights_sha256 = "w", .steps = 8}).finished().steps(), 8);
  EXPECT_EQ(Decode(3, Progress{.skipped_steps = 2}).progress().skipped_steps(), 2);
  EXPECT_EQ(Decode(3, Finished{.skipped_steps = 2}).finished().skipped_steps(), 2);
  EXPECT_EQ(Decode(3, Drained{4}).drained().step(), 4);
}

}  // namespace
}  // namespace ringmaster::train
