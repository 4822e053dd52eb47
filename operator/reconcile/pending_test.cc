#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::SizeIs;
using namespace reconcile::testing;

TEST(PendingTest, PutsPodsInOnePlightOnOneLineTheWorstFirst) {
  Observed observed = Created(3);
  observed = After(observed, Reconcile(observed));
  for (const int index : {0, 1}) {
    Pod(observed, index)["status"]["containerStatuses"] = kube::Json::array(
        {{{"state", {{"waiting", {{"reason", "ErrImagePull"}, {"message", "no such image"}}}}}}});
  }
  Pod(observed, 2)["status"]["conditions"] = kube::Json::array(
      {{{"type", "PodScheduled"}, {"status", "False"}, {"message", "0/3 nodes"}}});
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "PodsReady"), "False ErrImagePull");
  EXPECT_EQ(
      MessageOf(decision, "PodsReady"),
      "ErrImagePull: 2 of 3 pods (digits-0-0, digits-1-0): no such image; Unschedulable: 1 of "
      "3 pods (digits-2-0): 0/3 nodes");
  EXPECT_THAT(Events(decision), Contains("ErrImagePull"));
  observed = After(observed, decision);
  EXPECT_THAT(Events(Reconcile(observed)), Not(Contains("ErrImagePull"))) << "told once";
}

TEST(PendingTest, SaysInTheApiServersWordsWhyAPodIsNotTaken) {
  Observed observed = Created(2);
  observed.refused = {.reason = "Forbidden", .words = "exceeded quota: pods"};
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "PodsReady"), "False Forbidden");
  EXPECT_EQ(MessageOf(decision, "PodsReady"),
            "Forbidden: 2 of 2 pods (digits-0-0, digits-1-0): exceeded quota: pods");
  EXPECT_THAT(Events(decision), Contains("Forbidden"));
  EXPECT_THAT(CreatedPods(decision), SizeIs(2)) << "it is tried again";
  observed.job.status = decision.status;
  EXPECT_THAT(Events(Reconcile(observed)), Not(Contains("Forbidden"))) << "told once";
}

TEST(PendingTest, SaysWhatIsRefusedBesideThePodsWhileOneIsPending) {
  Observed observed = Training(2);
  SetPhase(observed, 1, "Pending");
  Pod(observed, 1)["status"]["conditions"] = kube::Json::array(
      {{{"type", "PodScheduled"}, {"status", "False"}, {"message", "0/3 nodes"}}});
  observed.refused = {.reason = "PodGroupRefused", .words = "no such queue"};
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "PodsReady"), "False PodGroupRefused");
  EXPECT_EQ(MessageOf(decision, "PodsReady"),
            "PodGroupRefused: no such queue; Unschedulable: 1 of 2 pods (digits-1-0): 0/3 nodes");
  EXPECT_THAT(Events(decision), Contains("PodGroupRefused"));
  observed = After(observed, decision);
  EXPECT_THAT(Events(Reconcile(observed)), Not(Contains("PodGroupRefused"))) << "told once";
}

TEST(PendingTest, KeepsARefusalThatTheStatusTellsUntilItIsKnownWhetherItHolds) {
  Observed observed = Created(2);
  observed.refused = {.reason = "Forbidden", .words = "exceeded quota: pods"};
  const Decision before = Reconcile(observed);
  observed.job.status = before.status;
  observed.refused.reset();
  observed.nothing_tried = true;
  const Decision first = Reconcile(observed);
  EXPECT_EQ(MessageOf(first, "PodsReady"), MessageOf(before, "PodsReady"));
  EXPECT_THAT(Events(first), Not(Contains("Forbidden")));
  EXPECT_THAT(CreatedPods(first), SizeIs(2)) << "it is tried";
  EXPECT_TRUE(Wait(first).has_value()) << "it looks again at once";
  observed.nothing_tried = false;
  EXPECT_EQ(ConditionOf(Reconcile(observed), "PodsReady"), "False PodsStarting");
}

TEST(PendingTest, KeepsNothingElseThatTheStatusTells) {
  Observed observed = Created(1);
  observed.job.status = Reconcile(observed).status;
  for (v1::Condition& condition : observed.job.status->conditions) {
    if (condition.type == "PodsReady") condition.reason = "ErrImagePull";
  }
  observed.nothing_tried = true;
  EXPECT_EQ(ConditionOf(Reconcile(observed), "PodsReady"), "False PodsStarting");
}

TEST(PendingTest, SaysWhatIsRefusedBesideThePodsWhileAllRun) {
  Observed observed = Training(2);
  observed.refused = {.reason = "Forbidden", .words = "services \"digits\" is forbidden"};
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "PodsReady"), "True Forbidden");
  EXPECT_EQ(MessageOf(decision, "PodsReady"), "2 of 2 pods run. services \"digits\" is forbidden");
  EXPECT_THAT(Events(decision), Contains("Forbidden"));
}

}  // namespace
}  // namespace ringmaster::reconcile
