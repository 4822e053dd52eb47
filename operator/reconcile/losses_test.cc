#include <gtest/gtest.h>

#include "common/contract.h"
#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using namespace reconcile::testing;
using std::chrono::seconds;

TEST(LossesTest, WaitsForASilentWorkerToComeBack) {
  Observed observed = Training(2);
  View(observed, 1).connected = false;
  View(observed, 1).disconnected_at = observed.now - seconds(5);
  const Decision decision = Reconcile(observed);
  EXPECT_FALSE(decision.status->restarts);
  EXPECT_EQ(Wait(decision), seconds(15));
}

TEST(LossesTest, WaitsHalfAsLongWhenAPeerSaysSo) {
  Observed observed = Training(2);
  View(observed, 1).connected = false;
  View(observed, 1).disconnected_at = observed.now - seconds(10);
  View(observed, 0).peers_lost.push_back({.round = 1, .rank = 1});
  EXPECT_EQ(Reconcile(observed).status->restarts->by_cause["Hang"], 1);
}

TEST(LossesTest, TakesAConnectedWorkerThatItsPeersHearNothingOfForHung) {
  Observed observed = Training(3);
  View(observed, 0).peers_lost.push_back({.round = 1, .rank = 1, .time = observed.now});
  const Decision waiting = Reconcile(observed);
  EXPECT_FALSE(waiting.status->restarts);
  EXPECT_EQ(Wait(waiting), seconds(20));
  observed.now += seconds(20);
  const Decision lost = Reconcile(observed);
  EXPECT_EQ(lost.status->restarts->by_cause.at("Hang"), 1);
  EXPECT_EQ(DeletedPods(lost), std::vector<std::string>{"digits-1-0"});
}

TEST(LossesTest, TakesABlamedWorkerThatGaveTheRoundUpItselfForNoCulprit) {
  Observed observed = Training(3);
  const Time accused = observed.now;
  View(observed, 0).peers_lost.push_back({.round = 1, .rank = 1, .time = accused});
  View(observed, 1).peers_lost.push_back({.round = 1, .rank = 2, .time = accused + seconds(1)});
  observed.now += seconds(21);
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(DeletedPods(decision), std::vector<std::string>{"digits-2-0"});
}

TEST(LossesTest, TakesABlamedWorkerThatWentOnSinceForNoCulprit) {
  Observed observed = Training(2);
  View(observed, 0).peers_lost.push_back({.round = 1, .rank = 1, .time = observed.now});
  View(observed, 1).progress =
      ProgressReport{.round = 1, .step = 9, .time = observed.now + seconds(1)};
  observed.now += seconds(60);
  EXPECT_FALSE(Reconcile(observed).status->restarts);
}

TEST(LossesTest, TakesABlamedWorkerThatHasLeftAtItsLastStepForNoCulprit) {
  Observed observed = Training(2);
  View(observed, 0).peers_lost.push_back({.round = 1, .rank = 1, .time = observed.now});
  View(observed, 1).drained_step = 9;
  observed.now += seconds(60);
  EXPECT_FALSE(Reconcile(observed).status->restarts);
}

TEST(LossesTest, IgnoresWhatPeersSaidInAnEarlierRound) {
  Observed observed = Training(2);
  View(observed, 1).connected = false;
  View(observed, 1).disconnected_at = observed.now - seconds(10);
  View(observed, 0).peers_lost.push_back({.round = 0, .rank = 1});
  EXPECT_FALSE(Reconcile(observed).status->restarts);
}

TEST(LossesTest, GivesWorkersTwiceTheTimeToDialInAfterTheOperatorHasStarted) {
  Observed observed = Training(2);
  observed.workers = {.since = observed.now - seconds(39)};
  const Decision waiting = Reconcile(observed);
  EXPECT_FALSE(waiting.status->restarts);
  EXPECT_EQ(Wait(waiting), seconds(1));
  observed.workers.since = observed.now - seconds(40);
  EXPECT_EQ(Reconcile(observed).status->restarts->total, 1);
}

TEST(LossesTest, LosesNobodyWhoMayHaveCalledWhileNobodyCouldBeToldFromAStranger) {
  for (const bool heard_before : {true, false}) {
    Observed observed = Training(2);
    View(observed, 1).connected = false;
    View(observed, 1).disconnected_at = observed.now - seconds(50);
    if (!heard_before) observed.workers.workers.pop_back();
    observed.workers.since = observed.now - seconds(5);
    const Decision waiting = Reconcile(observed);
    EXPECT_FALSE(waiting.status->restarts) << heard_before;
    const seconds rest(heard_before ? 15 : 35);
    EXPECT_EQ(Wait(waiting), rest) << heard_before;
    observed.now += rest;
    const Decision lost = Reconcile(observed);
    ASSERT_TRUE(lost.status->restarts) << heard_before;
    EXPECT_EQ(lost.status->lost_seconds->detect, heard_before ? 65 : 40)
        << "as long as it was away";
  }
}

TEST(LossesTest, WaitsAMomentForAnExplanationOfAnEarlyExitCodeZero) {
  Observed observed = Training(2);
  Exit(observed, 1, 0);
  Pod(observed, 1)["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] =
      FormatTime(observed.now);
  const Decision decision = Reconcile(observed);
  EXPECT_FALSE(decision.status->restarts);
  EXPECT_EQ(Wait(decision), seconds(2));
}

// The node's clock is ahead of ours, or behind.
void FinishedBy(Observed& observed, int index, Time finished) {
  Pod(observed, index)["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"] =
      FormatTime(finished);
}

TEST(LossesTest, WaitsForNoClockToCatchUpWithANodesThatIsAhead) {
  for (const int code : {0, int{contract::kExitPeerLost}}) {
    for (const bool heard : {true, false}) {
      Observed observed = Training(2);
      Exit(observed, 1, code);
      FinishedBy(observed, 1, observed.now + std::chrono::hours(1));
      View(observed, 1).last_heard = observed.now;
      if (!heard) observed.workers.workers.erase(observed.workers.workers.begin() + 1);
      observed.now += seconds(3);
      EXPECT_EQ(DeletedPods(Reconcile(observed)), std::vector<std::string>{"digits-1-0"})
          << code << " " << heard;
    }
  }
}

TEST(LossesTest, CountsNoClocksDifferenceAsLostTime) {
  for (const int hours : {1, -1}) {
    Observed observed = Training(2);
    View(observed, 1).last_heard = observed.now;
    Exit(observed, 1, 9);
    FinishedBy(observed, 1, observed.now + std::chrono::hours(hours));
    observed.now += seconds(3);
    const Decision decision = Reconcile(observed);
    ASSERT_TRUE(decision.status->restarts);
    EXPECT_EQ(decision.status->lost_seconds->detect, 3) << hours;
  }
}

}  // namespace
}  // namespace ringmaster::reconcile
