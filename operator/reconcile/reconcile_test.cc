#include "operator/reconcile/reconcile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::IsEmpty;
using namespace reconcile::testing;

TEST(ReconcileTest, LeavesJobsOfOthersAlone) {
  Observed observed = Created(1);
  observed.job.spec.managed_by = "kueue.x-k8s.io/multikueue";
  const Decision decision = Reconcile(observed);
  EXPECT_FALSE(decision.status);
  EXPECT_THAT(decision.actions, IsEmpty());
}

TEST(ReconcileTest, LeavesJobsOnTheirWayOutAlone) {
  Observed observed = Training(1);
  observed.job.metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_FALSE(Reconcile(observed).status);
}

TEST(ReconcileTest, DecidesTheSameFromTheSame) {
  Observed observed = Training(3);
  Exit(observed, 1, 137);
  const Decision first = Reconcile(observed);
  const Decision second = Reconcile(observed);
  EXPECT_EQ(first.status, second.status);
  EXPECT_EQ(CreatedPods(first), CreatedPods(second));
}

TEST(ReconcileTest, FailsAJobThatCanNeverWork) {
  Observed observed = Created(1);
  observed.problems = {{.path = "spec.trainer.batch.shards", .message = "too many"}};
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "Failed"), "True InvalidSpec");
  EXPECT_THAT(CreatedPods(decision), IsEmpty());
}

}  // namespace
}  // namespace ringmaster::reconcile
