#include "operator/manager/status_pace.h"

#include <map>
#include <memory>

#include <gtest/gtest.h>

namespace ringmaster::manager {
namespace {

using std::chrono::milliseconds;
using training::v1alpha1::Condition;
using training::v1alpha1::TrainingJobStatus;

const kube::ObjectKey kJob{"default", "digits"};

TrainingJobStatus Status(int active) {
  TrainingJobStatus status;
  status.state = "Pending";
  status.workers.emplace().active = active;
  status.conditions = {Condition{.type = "PodsReady",
                                 .status = "False",
                                 .reason = "PodsStarting",
                                 .message = std::to_string(active)}};
  return status;
}

reconcile::Decision To(TrainingJobStatus status) {
  return {.actions = {}, .status = std::move(status), .announce = {}, .result = controller::Done{}};
}

class StatusPaceTest : public ::testing::Test {
 protected:
  Duration Wait(const TrainingJobStatus& before, const reconcile::Decision& decision) {
    return pace_.WaitFor(kJob, before, decision);
  }

  // Of so many jobs whose statuses were written now and change now; after `quick_from` seconds the
  // API server takes statuses at once.
  int SecondsUntilAllAreTold(int jobs, int quick_from = 1000) {
    std::map<int, Duration> waiting;
    const auto key = [](int job) { return kube::ObjectKey{"default", std::to_string(job)}; };
    for (int job = 0; job < jobs; ++job) {
      pace_.Forget(key(job));
      EXPECT_EQ(pace_.WaitFor(key(job), Status(0), To(Status(1))), Duration(0));
      waiting[job] = Duration(0);
    }
    int seconds = 0;
    for (; !waiting.empty() && seconds < 1000; ++seconds) {
      if (seconds == quick_from) pace_.Took(milliseconds(1));
      for (auto& [job, wait] : waiting) {
        wait -= milliseconds(1000);
        if (wait <= Duration(0)) wait = pace_.WaitFor(key(job), Status(1), To(Status(2)));
      }
      std::erase_if(waiting, [](const auto& one) { return one.second == Duration(0); });
      clock_.Advance(milliseconds(1000));
    }
    return seconds - 1;
  }

  FakeClock clock_;
  Rush rush_{clock_};
  StatusPace pace_{milliseconds(1000), clock_, rush_};
};

TEST_F(StatusPaceTest, CountsAndWordsWaitForTheirTurn) {
  EXPECT_EQ(Wait(Status(0), To(Status(1))), Duration(0)) << "nothing was written yet";
  clock_.Advance(milliseconds(400));
  EXPECT_GE(Wait(Status(1), To(Status(2))), milliseconds(600));
  clock_.Advance(milliseconds(601));
  EXPECT_EQ(Wait(Status(1), To(Status(5))), Duration(0));
  EXPECT_GT(Wait(Status(5), To(Status(6))), Duration(0));
}

TEST_F(StatusPaceTest, CountsWaitAlsoWhereWorkersAreToBeToldSomethingMeanwhile) {
  EXPECT_EQ(Wait(Status(0), To(Status(1))), Duration(0));
  reconcile::Decision decision = To(Status(2));
  decision.actions = {reconcile::SendCommand{"u1", reconcile::CheckpointNowCommand{}}};
  decision.let_go = {"u2"};
  EXPECT_GT(Wait(Status(1), decision), Duration(0));
}

TEST_F(StatusPaceTest, CountsOfAllJobsTogetherTakeAFifthOfTheTime) {
  constexpr int kJobs = 20;
  const auto key = [](int job) { return kube::ObjectKey{"default", std::to_string(job)}; };
  pace_.Took(milliseconds(20));
  for (int job = 0; job < kJobs; ++job)
    EXPECT_EQ(pace_.WaitFor(key(job), Status(0), To(Status(1))), Duration(0));
  int written = 0;
  for (int tick = 0; tick < 1000; ++tick) {  // 100 s
    clock_.Advance(milliseconds(100));
    for (int job = 0; job < kJobs; ++job)
      written += pace_.WaitFor(key(job), Status(1), To(Status(tick + 2))) == Duration(0);
  }
  EXPECT_LE(written, 100'000 / 100 + 1);
  EXPECT_GE(written, 100'000 / 100 - kJobs) << "the time is used";
}

TEST_F(StatusPaceTest, WhatHasBecomeUntrueAgainHasNotWaited) {
  EXPECT_EQ(Wait(Status(0), To(Status(1))), Duration(0));
  const Rush::Creation creation(rush_);
  EXPECT_GT(Wait(Status(1), To(Status(2))), Duration(0));
  EXPECT_EQ(Wait(Status(1), To(Status(1))), Duration(0));
  clock_.Advance(milliseconds(20'000));
  EXPECT_GT(Wait(Status(1), To(Status(2))), Duration(0)) << "it waits from now on";
}

TEST_F(StatusPaceTest, CountsWaitWhilePodsAreCreatedButNotForEver) {
  EXPECT_EQ(Wait(Status(0), To(Status(1))), Duration(0));
  clock_.Advance(milliseconds(5000));
  auto creation = std::make_unique<Rush::Creation>(rush_);
  EXPECT_GT(Wait(Status(1), To(Status(2))), Duration(0));
  clock_.Advance(milliseconds(29'000));
  EXPECT_GT(Wait(Status(1), To(Status(3))), Duration(0));
  clock_.Advance(milliseconds(1001));
  EXPECT_EQ(Wait(Status(1), To(Status(3))), Duration(0)) << "however long pods are created";
  clock_.Advance(milliseconds(5000));
  EXPECT_GT(Wait(Status(3), To(Status(4))), Duration(0));
  creation.reset();
  clock_.Advance(milliseconds(1000));
  EXPECT_EQ(Wait(Status(3), To(Status(5))), Duration(0)) << "no pods are created any more";
}

TEST_F(StatusPaceTest, WhatIsNewIsToldWhilePodsAreCreated) {
  const Rush::Creation creation(rush_);
  EXPECT_EQ(Wait(Status(0), To(Status(1))), Duration(0));
  TrainingJobStatus formed = Status(1);
  formed.round = 1;
  EXPECT_EQ(Wait(Status(1), To(formed)), Duration(0));
}

TEST_F(StatusPaceTest, EachJobHasItsTurn) {
  const kube::ObjectKey other{"default", "other"};
  pace_.Took(milliseconds(200));
  EXPECT_EQ(Wait(Status(0), To(Status(1))), Duration(0));
  EXPECT_EQ(pace_.WaitFor(other, Status(0), To(Status(1))), Duration(0));
  const Duration mine = Wait(Status(1), To(Status(2)));
  const Duration theirs = pace_.WaitFor(other, Status(1), To(Status(2)));
  EXPECT_LT(mine, milliseconds(1001));
  EXPECT_GT(theirs, milliseconds(1200)) << "four in an interval, however long a call takes";
  EXPECT_LT(theirs, milliseconds(1252));
  EXPECT_EQ(Wait(Status(1), To(Status(3))), mine) << "asking again changes nothing";
  clock_.Advance(theirs);
  EXPECT_EQ(pace_.WaitFor(other, Status(1), To(Status(4))), Duration(0));
}

TEST_F(StatusPaceTest, NoJobsCountsWaitForMoreThanAMinute) {
  pace_.Took(std::chrono::hours(1));
  const int seconds = SecondsUntilAllAreTold(1000);
  EXPECT_GE(seconds, 60);
  EXPECT_LE(seconds, 61);
}

TEST_F(StatusPaceTest, TurnsComeSoonerAsSoonAsCallsAreQuick) {
  pace_.Took(std::chrono::hours(1));
  EXPECT_GE(SecondsUntilAllAreTold(100), 25);
  EXPECT_LE(SecondsUntilAllAreTold(100, /*quick_from=*/10), 16);
}

TEST_F(StatusPaceTest, EveryOtherChangeIsWrittenAtOnce) {
  const auto changes = {
      +[](TrainingJobStatus& status) { status.round = 2; },
      +[](TrainingJobStatus& status) { status.state = "Running"; },
      +[](TrainingJobStatus& status) { status.conditions[0].type = "Training"; },
      +[](TrainingJobStatus& status) { status.conditions[0].reason = "Unschedulable"; },
      +[](TrainingJobStatus& status) { status.conditions.push_back({.type = "Training"}); },
      +[](TrainingJobStatus& status) { status.incarnations.push_back({.index = 1}); },
      +[](TrainingJobStatus& status) { status.restarts.emplace(); },
  };
  EXPECT_EQ(Wait(Status(0), To(Status(1))), Duration(0));
  for (const auto& change : changes) {
    TrainingJobStatus after = Status(1);
    change(after);
    EXPECT_EQ(Wait(Status(1), To(after)), Duration(0)) << &change - changes.begin();
  }
}

TEST_F(StatusPaceTest, ThatAllPodsRunWaitsAsCountsDo) {
  const auto running = [] {
    TrainingJobStatus status = Status(1);
    status.state = "Starting";
    status.conditions[0].status = "True";
    status.conditions[0].reason = "PodsRunning";
    return status;
  }();
  EXPECT_EQ(Wait(Status(0), To(Status(1))), Duration(0));
  EXPECT_GT(Wait(Status(1), To(running)), Duration(0));
  clock_.Advance(milliseconds(1001));
  EXPECT_EQ(Wait(Status(1), To(running)), Duration(0));
  EXPECT_GT(Wait(running, To(Status(1))), Duration(0)) << "the way back, too";
  clock_.Advance(milliseconds(1001));
  TrainingJobStatus kept_out = Status(1);
  kept_out.conditions[0].reason = "Unschedulable";
  EXPECT_EQ(Wait(Status(1), To(kept_out)), Duration(0));
  clock_.Advance(milliseconds(1));
  EXPECT_EQ(Wait(kept_out, To(running)), Duration(0)) << "what kept them is over";
}

TEST_F(StatusPaceTest, ADecisionToActNeverWaits) {
  EXPECT_EQ(Wait(Status(0), To(Status(1))), Duration(0));
  reconcile::Decision decision = To(Status(2));
  decision.actions.emplace_back(reconcile::DeletePod{.name = "digits-0-0", .uid = "u"});
  EXPECT_EQ(Wait(Status(1), decision), Duration(0));
}

TEST_F(StatusPaceTest, CountsOfAJobThatHasEndedNeverWait) {
  EXPECT_EQ(Wait(Status(0), To(Status(1))), Duration(0));
  TrainingJobStatus before = Status(1);
  before.completion_time = clock_.Now();
  TrainingJobStatus after = before;
  after.workers->failed = 1;
  EXPECT_EQ(Wait(before, To(after)), Duration(0));
}

TEST_F(StatusPaceTest, AFirstStatusAndAJobThatWasForgottenAreWrittenAtOnce) {
  EXPECT_EQ(pace_.WaitFor(kJob, std::nullopt, To(Status(1))), Duration(0));
  EXPECT_EQ(pace_.WaitFor(kJob, std::nullopt, To(Status(1))), Duration(0));
  pace_.Forget(kJob);
  EXPECT_EQ(Wait(Status(1), To(Status(2))), Duration(0));
}

TEST_F(StatusPaceTest, AFirstStatusThatFollowsItsPodsTakesItsTurn) {
  constexpr bool kStored = false;
  const auto wait = [&](int active) {
    return pace_.WaitFor(kJob, Status(0), To(Status(active)), kStored);
  };
  const auto creation = std::make_unique<Rush::Creation>(rush_);
  reconcile::Decision creates = To(Status(0));
  creates.actions.push_back(reconcile::CreatePod{});
  EXPECT_EQ(pace_.WaitFor(kJob, std::nullopt, creates, kStored), Duration(0));
  EXPECT_EQ(wait(0), milliseconds(1000)) << "although nothing has changed since it was decided";
  clock_.Advance(milliseconds(30'000));
  EXPECT_EQ(wait(8), Duration(0)) << "the rush has lasted long enough";
}

TEST_F(StatusPaceTest, WithoutAnIntervalNothingWaits) {
  StatusPace at_once(Duration(0), clock_, rush_);
  EXPECT_EQ(at_once.WaitFor(kJob, Status(0), To(Status(1))), Duration(0));
  EXPECT_EQ(at_once.WaitFor(kJob, Status(1), To(Status(2))), Duration(0));
}

}  // namespace
}  // namespace ringmaster::manager
