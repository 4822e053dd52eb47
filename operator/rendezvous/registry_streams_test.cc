// Who may speak, and when a stream ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/rendezvous/testing/registry_fixture.h"

namespace ringmaster::rendezvous {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using testing::kJob;
using testing::Line;
using testing::MakeExited;
using testing::MakeProgress;
using testing::RegistryTest;

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

TEST_F(RegistryTest, ShowsWhoCameOnlyToSayItsLast) {
  Join("u0", /*round=*/1, /*leaving=*/true);
  EXPECT_TRUE(View("u0").departing);
  Join("u1", /*round=*/1);
  EXPECT_FALSE(View("u1").departing);
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

TEST_F(RegistryTest, KeepsTheNewerStreamOfAPodWhoseOlderHelloIsCheckedLater) {
  Line newer;
  verifier_.meanwhile = [&] { newer = Join("u0", /*round=*/2); };
  const Line older = Join("u0", /*round=*/1);
  EXPECT_THAT(newer.down->Story(), ElementsAre("accepted"));
  EXPECT_FALSE(newer.down->end.has_value());
  EXPECT_THAT(older.down->Story(), ElementsAre());
  ASSERT_TRUE(older.down->end.has_value());
  EXPECT_EQ(older.down->end->code(), absl::StatusCode::kAborted);
  registry_.Closed(older.id);
  EXPECT_TRUE(View("u0").connected);
  EXPECT_EQ(View("u0").round, 2);
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

TEST_F(RegistryTest, LetsAWorkerThatHasEndedGoOnlyWhenItIsTold) {
  const Line line = Join("u0");
  Say(line, MakeExited(0));
  registry_.LetGo(kJob, "u0");
  EXPECT_FALSE(line.down->end.has_value()) << "it may have more to say";
  changes_ = 0;
  registry_.HalfClosed(line.id);
  EXPECT_EQ(changes_, 1);
  EXPECT_TRUE(View("u0").leaving);
  EXPECT_FALSE(View("u0").connected);
  EXPECT_FALSE(line.down->end.has_value());
  registry_.LetGo(kJob, "u0");
  EXPECT_TRUE(line.down->end->ok());
  EXPECT_FALSE(View("u0").leaving);
  EXPECT_TRUE(View("u0").exited.has_value());
}

TEST_F(RegistryTest, SendsHeartbeatsToAWorkerThatWaitsToBeLetGoAndExpectsNone) {
  const Line line = Join("u0");
  Say(line, MakeExited(0));
  registry_.HalfClosed(line.id);
  Pass(seconds(60));
  EXPECT_EQ(line.down->heartbeats, 120);
  EXPECT_TRUE(View("u0").leaving);
  Pass(seconds(70));  // no launcher waits for so long
  EXPECT_EQ(line.down->end->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(View("u0").leaving);
}

TEST_F(RegistryTest, EndsWithoutOkForThoseWhoWaitToBeLetGoWhenItLeadsNoMore) {
  const Line line = Join("u0");
  Say(line, MakeExited(0));
  registry_.HalfClosed(line.id);
  registry_.StandBy("10.0.0.2:7471");
  EXPECT_EQ(line.down->end->code(), absl::StatusCode::kUnavailable);
}

TEST_F(RegistryTest, LetsAllGoWhenItForgetsTheirJob) {
  const Line line = Join("u0");
  Say(line, MakeExited(0));
  registry_.HalfClosed(line.id);
  registry_.Forget(kJob);
  EXPECT_TRUE(line.down->end->ok());
}

TEST_F(RegistryTest, WaitsNoMoreForAWorkerWhoseStreamBrokeMeanwhile) {
  const Line line = Join("u0");
  Say(line, MakeExited(0));
  registry_.HalfClosed(line.id);
  registry_.Closed(line.id);
  EXPECT_FALSE(View("u0").leaving);
  const Line again = Join("u0");
  registry_.HalfClosed(again.id);
  EXPECT_TRUE(View("u0").leaving);
}

TEST_F(RegistryTest, CountsAWorkerThatWasToBeLetGoAsAwayOnlySinceItsStreamBroke) {
  const Line line = Join("u0");
  Say(line, MakeExited(0));
  registry_.HalfClosed(line.id);
  Pass(seconds(60));
  const Time before = clock_.Now();
  registry_.Closed(line.id);
  EXPECT_GE(View("u0").disconnected_at, before);
}

TEST_F(RegistryTest, EndsAtOnceTheStreamOfAWorkerThatStopsSpeakingBeforeItsProgramHasEnded) {
  const Line line = Join("u0");
  registry_.HalfClosed(line.id);
  EXPECT_TRUE(line.down->end->ok());
  EXPECT_FALSE(View("u0").connected);
  EXPECT_FALSE(View("u0").leaving);
}

TEST_F(RegistryTest, ForgetsAJobAndEndsItsStreams) {
  const Line line = Join("u0");
  registry_.Forget(kJob);
  EXPECT_EQ(line.down->end->code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(registry_.SnapshotFor(kJob).workers.empty());
}

TEST_F(RegistryTest, HoldsNobodysAbsenceAgainstHimWhileChecksFail) {
  verifier_.verdicts["u0"] = absl::UnavailableError("the token cannot be checked: 500");
  for (int i = 0; i < 12; ++i) {
    const Line line = Join("u0");
    ASSERT_THAT(line.down->Story(), ElementsAre("refused"));
    EXPECT_FALSE(line.down->messages[0].refused().permanent());
    EXPECT_EQ(registry_.SnapshotFor(kJob).since, clock_.Now());
    Pass(seconds(5));
  }
  EXPECT_EQ(registry_.SnapshotFor(kJob).since, clock_.Now() - seconds(5)) << "only while";
  EXPECT_TRUE(registry_.SnapshotFor(kJob).workers.empty()) << "nobody is believed meanwhile";
}

TEST_F(RegistryTest, LetsNobodyExcuseAbsenceByHellosThatAreCheckedAndRefused) {
  const Time since = registry_.SnapshotFor(kJob).since;
  for (const absl::Status& verdict : {absl::UnauthenticatedError("the token is not known"),
                                      absl::PermissionDeniedError("the token is of another pod"),
                                      absl::NotFoundError("no pod")}) {
    verifier_.verdicts["u0"] = verdict;
    for (int i = 0; i < 30; ++i) {
      Join("u0");
      Pass(seconds(1));
    }
  }
  EXPECT_EQ(registry_.SnapshotFor(kJob).since, since);
}

TEST_F(RegistryTest, KeepsAWorkerOnTheLineWhoseHelloIsCheckedForLong) {
  verifier_.meanwhile = [&] { Pass(seconds(8)); };
  const Line line = Join("u0");
  EXPECT_THAT(line.down->Story(), ElementsAre("accepted"));
  EXPECT_FALSE(line.down->end.has_value());
  EXPECT_EQ(line.down->heartbeats, 16);
  EXPECT_EQ(registry_.SnapshotFor(kJob).since, clock_.Now()) << "others may wait behind it";
}

TEST_F(RegistryTest, KeepsAWorkerOnTheLineWhoseHelloWaitsForItsTurn) {
  const Line line = Open();
  registry_.Queued(line.id);
  Pass(seconds(8));
  EXPECT_FALSE(line.down->end.has_value());
  EXPECT_EQ(line.down->heartbeats, 16);
  EXPECT_EQ(registry_.SnapshotFor(kJob).since, clock_.Now());
  registry_.Closed(line.id);
  Pass(seconds(8));
  EXPECT_EQ(registry_.SnapshotFor(kJob).since, clock_.Now() - seconds(8));
}

TEST_F(RegistryTest, LetsALineThatNeverEndsExcuseAbsenceForTenMinutes) {
  const Line line = Open();
  registry_.Queued(line.id);
  Pass(std::chrono::minutes(15));
  EXPECT_GE(registry_.SnapshotFor(kJob).since, clock_.Now() - std::chrono::minutes(5) - seconds(2));
  EXPECT_LE(registry_.SnapshotFor(kJob).since, clock_.Now() - std::chrono::minutes(5) + seconds(3));
}

TEST_F(RegistryTest, TakesNobodyInWhoseCheckEndsWhenItLeadsNoMore) {
  verifier_.meanwhile = [&] { registry_.StandBy("10.0.0.2:7471"); };
  const Line line = Join("u0");
  EXPECT_EQ(line.down->end->code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(line.down->Story(), ElementsAre());
  EXPECT_TRUE(registry_.SnapshotFor(kJob).workers.empty());
  Pass(seconds(2));
  EXPECT_EQ(line.down->heartbeats, 0);
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

}  // namespace
}  // namespace ringmaster::rendezvous
