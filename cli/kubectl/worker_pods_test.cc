#include "cli/kubectl/worker_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/contract.h"
#include "common/status.h"
#include "operator/kube/object.h"

namespace ringmaster::cli::kubectl {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

kube::ObjectPtr Pod(int index, int incarnation) {
  return std::make_shared<const Json>(
      Json{{"metadata",
            {{"name", "digits-" + std::to_string(index) + "-" + std::to_string(incarnation)},
             {"labels",
              {{contract::kLabelIndex, std::to_string(index)},
               {contract::kLabelIncarnation, std::to_string(incarnation)}}}}}});
}

// Three workers; worker 1 was replaced once, and worker 2 has rank 0.
Json Job() {
  return {
      {"metadata", {{"name", "digits"}}},
      {"spec", {{"workers", {{"replicas", 3}}}}},
      {"status",
       {{"state", "Running"},
        {"round", 2},
        {"members",
         {{{"rank", 0}, {"pod", "digits-2-0"}},
          {{"rank", 1}, {"pod", "digits-0-0"}},
          {{"rank", 2}, {"pod", "digits-1-1"}}}},
        {"restarts", {{"recent", {{{"pod", "digits-1-0"}, {"message", "exit code 3: boom"}}}}}}}}};
}

std::vector<std::string> Names(const std::vector<kube::ObjectPtr>& pods) {
  std::vector<std::string> names;
  for (const kube::ObjectPtr& pod : pods) names.push_back(kube::Name(*pod));
  return names;
}

TEST(WorkerPodsTest, RankIsTheWorkerWhosePodHasItInThisRound) {
  EXPECT_EQ(*IndexOfRank(Job(), 0), 2);
  EXPECT_EQ(*IndexOfRank(Job(), 2), 1);
}

TEST(WorkerPodsTest, UnknownRankIsToldWhichThereAre) {
  EXPECT_EQ(Message(IndexOfRank(Job(), 3).status()),
            "digits: no rank 3 in round 2; there are ranks 0 to 2");
  Json fresh = Job();
  fresh.erase("status");
  EXPECT_THAT(Message(IndexOfRank(fresh, 0).status()), HasSubstr("no round yet"));
}

TEST(WorkerPodsTest, LatestPodOfEachWorkerIsTaken) {
  const std::vector pods{Pod(1, 0), Pod(10, 0), Pod(2, 0), Pod(1, 10), Pod(1, 9)};
  EXPECT_THAT(Names(*LatestPods(Job(), pods, std::nullopt)),
              ElementsAre("digits-1-10", "digits-2-0", "digits-10-0"));
  EXPECT_THAT(Names(*LatestPods(Job(), pods, 1)), ElementsAre("digits-1-10"));
}

TEST(WorkerPodsTest, WorkerThatIsNoneIsToldApartFromOneWithoutAPod) {
  EXPECT_EQ(Message(CheckIndex(Job(), 3)), "digits: no worker 3; there are workers 0 to 2");
  EXPECT_TRUE(CheckIndex(Job(), 2).ok());
  EXPECT_TRUE(CheckIndex(Job(), std::nullopt).ok());
  EXPECT_EQ(Message(LatestPods(Job(), {Pod(0, 0)}, 2).status()),
            "digits: no pod of worker 2 now; the job is Running");
  EXPECT_EQ(Message(LatestPods(Job(), {}, std::nullopt).status()),
            "digits: no pod now; the job is Running");
}

TEST(WorkerPodsTest, ReplacedPodThatIsStillThereComesBeforeItsLastWords) {
  const auto there = ReplacedPods(Job(), {Pod(0, 0), Pod(1, 0), Pod(1, 1)}, std::nullopt);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_THAT(Names(there->pods), ElementsAre("digits-1-0"));
  EXPECT_TRUE(there->last_words.empty());
  const auto gone = ReplacedPods(Job(), {Pod(0, 0), Pod(1, 1)}, 1);
  ASSERT_TRUE(gone.ok()) << gone.status();
  EXPECT_TRUE(gone->pods.empty());
  EXPECT_THAT(gone->last_words, ElementsAre("digits-1-0: exit code 3: boom"));
}

TEST(WorkerPodsTest, WorkerThatWasNeverReplacedHasNothingBefore) {
  const auto none = ReplacedPods(Job(), {Pod(0, 0), Pod(1, 1)}, 0);
  EXPECT_TRUE(absl::IsNotFound(none.status()));
  EXPECT_THAT(Message(none.status()),
              HasSubstr("of worker 0; \"kubectl ringmaster events digits\""));
}

}  // namespace
}  // namespace ringmaster::cli::kubectl
