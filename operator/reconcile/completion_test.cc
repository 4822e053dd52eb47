#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::ElementsAre;
using namespace reconcile::testing;
using std::chrono::seconds;

FinishedReport Finished() {
  return {.round = 1, .weights_sha256 = "5f1c", .steps = 400, .accuracy = 0.978};
}

TEST(CompletionTest, TakesTheResultOnlyWhenAllMembersAreThrough) {
  Observed observed = Training(2);
  View(observed, 0).finished = Finished();
  EXPECT_FALSE(Reconcile(observed).status->result);
  View(observed, 1).finished = Finished();
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(decision.status->result->weights_sha256, "5f1c");
  EXPECT_EQ(ConditionOf(decision, "Succeeded"), "") << "the pods have not ended";
}

TEST(CompletionTest, BelievesAPodThatEndedWellInARoundWhoseOthersHaveFinished) {
  Observed observed = Training(2);
  View(observed, 0).finished = Finished();
  Exit(observed, 1, 0);
  EXPECT_TRUE(Reconcile(observed).status->result);
}

TEST(CompletionTest, DoesNotWaitForEverForPodsThatWillNotEnd) {
  Observed observed = Training(1);
  View(observed, 0).finished = Finished();
  observed = After(observed, Reconcile(observed));
  observed.now += seconds(30);
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "Succeeded"), "True Completed");
  EXPECT_THAT(DeletedPods(decision), ElementsAre("digits-0-0"));
}

TEST(CompletionTest, IsWorkerZerosWhereThePolicySaysSo) {
  Observed observed = Training(2);
  observed.job.spec.success_policy = v1::SuccessPolicy::kWorkerZero;
  View(observed, 0).finished = Finished();
  Exit(observed, 0, 0);
  EXPECT_EQ(ConditionOf(Reconcile(observed), "Succeeded"), "True Completed");
}

}  // namespace
}  // namespace ringmaster::reconcile
