#include "operator/rendezvous/registry.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/rendezvous/testing/worker_client.h"
#include "ringmaster/rendezvous/v1/rendezvous.pb.h"

namespace ringmaster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using testing::MakeHello;
using testing::MakeProgress;
using testing::MakeReady;
using testing::MakeShard;

const kube::ObjectKey kJob{"default", "digits"};

class RecordingDownstream : public Downstream {
 public:
  void Send(const v1::ToWorker& message) override {
    if (message.has_heartbeat()) {
      ++heartbeats;
    } else {
      messages.push_back(message);
    }
  }
  void End(const absl::Status& status) override {
    if (!end) end = status;
  }

  // "accepted", "refused", "round 3", "drain" ...
  std::vector<std::string> Story() const {
    std::vector<std::string> story;
    for (const v1::ToWorker& message : messages) {
      if (message.has_accepted()) story.push_back("accepted");
      if (message.has_refused()) story.push_back("refused");
      if (!message.has_command()) continue;
      const v1::Command& command = message.command();
      if (command.has_round()) story.push_back("round " + std::to_string(command.round().number()));
      if (command.has_drain()) story.push_back("drain");
      if (command.has_stop()) story.push_back("stop");
      if (command.has_checkpoint_now()) story.push_back("checkpoint");
    }
    return story;
  }

  std::vector<v1::ToWorker> messages;
  int heartbeats = 0;
  std::optional<absl::Status> end;
};

class TableVerifier : public PodVerifier {
 public:
  absl::Status Verify(const WorkerIdentity& worker) override {
    const auto found = verdicts.find(worker.pod_uid);
    return found == verdicts.end() ? absl::NotFoundError("no pod " + worker.pod) : found->second;
  }
  std::map<std::string, absl::Status> verdicts;  // by pod UID
};

struct Line {
  std::shared_ptr<RecordingDownstream> down = std::make_shared<RecordingDownstream>();
  Registry::StreamId id = 0;
};

class RegistryTest : public ::testing::Test {
 protected:
  RegistryTest() {
    for (const char* uid : {"u0", "u1", "u2"}) verifier_.verdicts[uid] = absl::OkStatus();
  }

  Line Open() {
    Line line;
    line.id = registry_.Opened(line.down, "10.0.0.9");
    return line;
  }

  Line Join(const std::string& uid, std::int64_t round = 0) {
    Line line = Open();
    v1::FromWorker message;
    *message.mutable_hello() = MakeHello("pod-" + uid, uid, round);
    registry_.Received(line.id, message);
    return line;
  }

  void Say(const Line& line, const v1::Event& event) {
    v1::FromWorker message;
    *message.mutable_event() = event;
    registry_.Received(line.id, message);
  }

  void Beat(const Line& line, std::int64_t round = 0) {
    v1::FromWorker message;
    message.mutable_heartbeat()->set_round(round);
    registry_.Received(line.id, message);
  }

  // Time as the service lives it: a tick at least every heartbeat.
  void Pass(Duration time) {
    for (Duration passed{0}; passed < time; passed += milliseconds(250)) {
      clock_.Advance(milliseconds(250));
      registry_.Tick();
    }
  }

  reconcile::WorkerView View(const std::string& uid) {
    for (const reconcile::WorkerView& view : registry_.SnapshotFor(kJob).workers) {
      if (view.pod_uid == uid) return view;
    }
    ADD_FAILURE() << "no worker " << uid;
    return {};
  }

  static reconcile::Announcement Round(std::int64_t number, const std::vector<std::string>& uids) {
    reconcile::Announcement round{.round = number, .shards = 4};
    for (const std::string& uid : uids) {
      const int rank = static_cast<int>(round.members.size());
      round.members.push_back({rank, "pod-" + uid, uid, "10.0.0.1:7473"});
    }
    return round;
  }

  FakeClock clock_;
  TableVerifier verifier_;
  int changes_ = 0;
  Registry registry_{{Timing{}, "secret"}, clock_, verifier_, [this](const kube::ObjectKey& job) {
                       EXPECT_EQ(job, kJob);
                       ++changes_;
                     }};
};

TEST_F(RegistryTest, AcceptsAWorkerWhosePodIsVerified) {
  const Line line = Join("u0");
  EXPECT_THAT(line.down->Story(), ElementsAre("accepted"));
  EXPECT_EQ(line.down->messages[0].accepted().timeout_ms(), 5000);
  EXPECT_TRUE(View("u0").connected);
  EXPECT_EQ(View("u0").pod, "pod-u0");
  EXPECT_EQ(changes_, 1);
}

TEST_F(RegistryTest, RefusesAnUnknownPodForNow) {
  const Line line = Join("nobody");
  EXPECT_THAT(line.down->Story(), ElementsAre("refused"));
  EXPECT_FALSE(line.down->messages[0].refused().permanent());
  EXPECT_TRUE(line.down->end.has_value());
  EXPECT_TRUE(registry_.SnapshotFor(kJob).workers.empty());
  EXPECT_EQ(changes_, 0);
}

TEST_F(RegistryTest, RefusesATerminatingPodForGood) {
  verifier_.verdicts["u0"] = absl::FailedPreconditionError("pod default/pod-u0 is terminating");
  const Line line = Join("u0");
  ASSERT_THAT(line.down->Story(), ElementsAre("refused"));
  EXPECT_TRUE(line.down->messages[0].refused().permanent());
  EXPECT_EQ(line.down->messages[0].refused().reason(), "pod default/pod-u0 is terminating");
}

TEST_F(RegistryTest, RefusesAHelloWithoutAPodUid) {
  const Line line = Join("");
  ASSERT_THAT(line.down->Story(), ElementsAre("refused"));
  EXPECT_EQ(line.down->messages[0].refused().reason(), "the Hello has no pod_uid");
}

TEST_F(RegistryTest, EndsAStreamThatDoesNotBeginWithHello) {
  const Line line = Open();
  Say(line, MakeProgress(1, 1));
  ASSERT_TRUE(line.down->end.has_value());
  EXPECT_EQ(line.down->end->code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RegistryTest, EndsAStreamThatNeverSaysHello) {
  const Line line = Open();
  Pass(seconds(6));
  ASSERT_TRUE(line.down->end.has_value());
  EXPECT_EQ(line.down->end->code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(RegistryTest, ReplacesTheOlderStreamOfTheSamePod) {
  const Line older = Join("u0");
  const Line newer = Join("u0");
  ASSERT_TRUE(older.down->end.has_value());
  EXPECT_EQ(older.down->end->code(), absl::StatusCode::kAborted);
  Say(older, MakeProgress(0, 99));  // a replay of the old stream counts no more
  registry_.Closed(older.id);
  EXPECT_FALSE(View("u0").progress.has_value());
  EXPECT_TRUE(View("u0").connected);
  Say(newer, MakeProgress(0, 5));
  EXPECT_EQ(View("u0").progress->step, 5);
}

TEST_F(RegistryTest, MarksASilentWorkerLostAndEndsItsStream) {
  const Line silent = Join("u0");
  const Line lively = Join("u1");
  for (int i = 0; i < 12; ++i) {
    Pass(milliseconds(500));
    Beat(lively);
  }
  EXPECT_FALSE(View("u0").connected);
  EXPECT_TRUE(View("u0").disconnected_at.has_value());
  EXPECT_EQ(silent.down->end->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(View("u1").connected);
  EXPECT_FALSE(lively.down->end.has_value());
}

TEST_F(RegistryTest, BlamesNobodyWhenItStoodStillItself) {
  Join("u0");
  clock_.Advance(seconds(60));
  registry_.Tick();
  EXPECT_TRUE(View("u0").connected);
  Pass(seconds(6));
  EXPECT_FALSE(View("u0").connected);
}

TEST_F(RegistryTest, SendsHeartbeatsToThoseAccepted) {
  const Line joined = Join("u0");
  const Line stranger = Open();
  Pass(seconds(2));
  EXPECT_EQ(joined.down->heartbeats, 4);
  EXPECT_EQ(stranger.down->heartbeats, 0);
}

TEST_F(RegistryTest, TellsAtOnceThatAStreamBroke) {
  const Line line = Join("u0");
  changes_ = 0;
  registry_.Closed(line.id);
  EXPECT_FALSE(View("u0").connected);
  EXPECT_EQ(changes_, 1);
}

TEST_F(RegistryTest, EndsWithOkWhenTheWorkerHasSaidEverything) {
  const Line line = Join("u0");
  registry_.HalfClosed(line.id);
  EXPECT_TRUE(line.down->end->ok());
  EXPECT_FALSE(View("u0").connected);
}

TEST_F(RegistryTest, AnnouncesARoundToItsMembersOnly) {
  const Line a = Join("u0");
  const Line b = Join("u1");
  const Line other = Join("u2");
  registry_.Announce(kJob, Round(1, {"u1", "u0"}));
  EXPECT_THAT(a.down->Story(), ElementsAre("accepted", "round 1"));
  EXPECT_THAT(b.down->Story(), ElementsAre("accepted", "round 1"));
  EXPECT_THAT(other.down->Story(), ElementsAre("accepted"));
  const v1::Round& round = a.down->messages[1].command().round();
  EXPECT_EQ(round.rank(), 1);
  EXPECT_EQ(round.members_size(), 2);
  EXPECT_EQ(round.shards(), 4);
  EXPECT_EQ(round.key().size(), 32u);
  EXPECT_EQ(round.key(), b.down->messages[1].command().round().key());
}

TEST_F(RegistryTest, AnnouncesARoundOnceHoweverOftenItIsAsked) {
  const Line line = Join("u0");
  registry_.Announce(kJob, Round(1, {"u0"}));
  registry_.Announce(kJob, Round(1, {"u0"}));
  EXPECT_THAT(line.down->Story(), ElementsAre("accepted", "round 1"));
}

TEST_F(RegistryTest, AnnouncesRoundsInOrderAndNeverAnOlderOne) {
  const Line line = Join("u0");
  registry_.Announce(kJob, Round(1, {"u0"}));
  registry_.Announce(kJob, Round(2, {"u0"}));
  registry_.Announce(kJob, Round(1, {"u0"}));
  EXPECT_THAT(line.down->Story(), ElementsAre("accepted", "round 1", "round 2"));
}

TEST_F(RegistryTest, TellsTheRoundAgainToAMemberThatDialsAgain) {
  registry_.Closed(Join("u0").id);
  registry_.Announce(kJob, Round(3, {"u0"}));
  const Line again = Join("u0", 3);
  EXPECT_THAT(again.down->Story(), ElementsAre("accepted", "round 3"));
  EXPECT_EQ(View("u0").round, 3);
}

TEST_F(RegistryTest, GivesARoundTheSameKeyAfterARestart) {
  const Line before = Join("u0");
  registry_.Announce(kJob, Round(1, {"u0"}));
  Registry restarted({Timing{}, "secret"}, clock_, verifier_, [](const kube::ObjectKey&) {});
  restarted.Announce(kJob, Round(1, {"u0"}));
  Line after;
  after.id = restarted.Opened(after.down, "10.0.0.9");
  v1::FromWorker hello;
  *hello.mutable_hello() = MakeHello("pod-u0", "u0", 1);
  restarted.Received(after.id, hello);
  EXPECT_EQ(before.down->messages[1].command().round().key(),
            after.down->messages[1].command().round().key());
}

TEST_F(RegistryTest, DropsEventsOfAnOlderRound) {
  const Line line = Join("u0");
  registry_.Announce(kJob, Round(2, {"u0"}));
  changes_ = 0;
  Say(line, MakeProgress(1, 50));
  Say(line, MakeShard(1, 50, "d"));
  EXPECT_FALSE(View("u0").progress.has_value());
  EXPECT_TRUE(View("u0").durable.empty());
  EXPECT_EQ(changes_, 0);
  Say(line, MakeReady("10.0.0.1:7473"));  // speaks of the worker, not of a round
  EXPECT_TRUE(View("u0").ready.has_value());
}

TEST_F(RegistryTest, HoldsProgressBackToTwoASecond) {
  const Line line = Join("u0");
  changes_ = 0;
  for (int step = 1; step <= 40; ++step) {
    Say(line, MakeProgress(1, step));
    clock_.Advance(milliseconds(50));
    registry_.Tick();
  }
  EXPECT_GE(changes_, 4);
  EXPECT_LE(changes_, 6);  // the first also moves the worker to round 1
  Pass(seconds(1));
  EXPECT_EQ(View("u0").progress->step, 40);
  EXPECT_LE(changes_, 6);
}

TEST_F(RegistryTest, TellsOfADurableShardAtOnceAndOnlyOnce) {
  const Line line = Join("u0");
  Say(line, MakeShard(1, 10, "d10"));
  changes_ = 0;
  Say(line, MakeShard(1, 10, "d10"));
  EXPECT_EQ(changes_, 0);
  Say(line, MakeShard(1, 20, "d20"));
  EXPECT_EQ(changes_, 1);
  ASSERT_EQ(View("u0").durable.size(), 2u);
  registry_.Send(kJob, "u0", reconcile::CheckpointCommittedCommand{{.step = 10, .round = 1}, {}});
  ASSERT_EQ(View("u0").durable.size(), 1u);
  EXPECT_EQ(View("u0").durable[0].digest, "d20");
}

TEST_F(RegistryTest, ForgetsShardReportsOfTheRoundBefore) {
  const Line line = Join("u0");
  Say(line, MakeShard(1, 10, "d10"));
  Beat(line, 2);
  EXPECT_EQ(View("u0").round, 2);
  EXPECT_TRUE(View("u0").durable.empty());
}

TEST_F(RegistryTest, KeepsABoundedNumberOfReports) {
  const Line line = Join("u0");
  for (int step = 0; step < 1000; ++step) Say(line, MakeShard(1, step, "d"));
  ASSERT_EQ(View("u0").durable.size(), kReportsKept);
  EXPECT_EQ(View("u0").durable.back().step, 999);
}

TEST_F(RegistryTest, SendsADrainOnceAndACheckpointAsOftenAsAsked) {
  const Line line = Join("u0");
  for (int i = 0; i < 2; ++i) {
    registry_.Send(kJob, "u0", reconcile::DrainCommand{"suspended"});
    registry_.Send(kJob, "u0", reconcile::CheckpointNowCommand{});
  }
  EXPECT_THAT(line.down->Story(), ElementsAre("accepted", "drain", "checkpoint", "checkpoint"));
}

TEST_F(RegistryTest, KeepsTheLastWordsOfAWorkerUntilItsPodIsGone) {
  const Line line = Join("u0");
  v1::Event exited;
  exited.mutable_exited()->set_exit_code(66);
  exited.mutable_exited()->set_message("digits.csv:3: not a number");
  Say(line, exited);
  registry_.Closed(line.id);
  Pass(seconds(10));
  EXPECT_EQ(View("u0").exited->exit_code, 66);
  verifier_.verdicts.erase("u0");
  Pass(seconds(10));
  EXPECT_TRUE(registry_.SnapshotFor(kJob).workers.empty());
}

TEST_F(RegistryTest, ForgetsAJobAndEndsItsStreams) {
  const Line line = Join("u0");
  registry_.Forget(kJob);
  EXPECT_EQ(line.down->end->code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(registry_.SnapshotFor(kJob).workers.empty());
}

TEST_F(RegistryTest, RefusesWorkersWhileItDoesNotLead) {
  const Line before = Join("u0");
  registry_.StandBy("10.0.0.2:7471");
  EXPECT_EQ(before.down->end->code(), absl::StatusCode::kUnavailable);
  const Line line = Join("u0");
  ASSERT_THAT(line.down->Story(), ElementsAre("refused"));
  EXPECT_EQ(line.down->messages[0].refused().leader(), "10.0.0.2:7471");
  EXPECT_FALSE(line.down->messages[0].refused().permanent());
  clock_.Advance(seconds(30));
  registry_.Activate();
  EXPECT_EQ(registry_.SnapshotFor(kJob).since, clock_.Now());
  EXPECT_THAT(Join("u0").down->Story(), ElementsAre("accepted"));
}

TEST_F(RegistryTest, TakesAForeignProgramForReadyAtHello) {
  Line line = Open();
  v1::FromWorker message;
  *message.mutable_hello() = MakeHello("pod-u0", "u0");
  message.mutable_hello()->set_native(false);
  message.mutable_hello()->set_address("10.0.0.1:29500");
  registry_.Received(line.id, message);
  ASSERT_TRUE(View("u0").ready.has_value());
  EXPECT_EQ(View("u0").ready->address, "10.0.0.1:29500");
}

}  // namespace
}  // namespace ringmaster::rendezvous
