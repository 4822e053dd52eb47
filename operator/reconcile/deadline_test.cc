#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reasons.h"
#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::HasSubstr;
using namespace reconcile::testing;
using std::chrono::seconds;

TEST(DeadlineTest, EndsTheJobAtTheActiveDeadlineAndNotBefore) {
  Observed observed = Training(1);
  observed.job.spec.active_deadline_seconds = 61;
  EXPECT_EQ(Wait(Reconcile(observed)), seconds(1));
  observed.now += seconds(1);
  EXPECT_EQ(ConditionOf(Reconcile(observed), "Failed"), "True DeadlineExceeded");
}

TEST(DeadlineTest, CountsTheStartFromTheLatestLoss) {
  Observed observed = Training(2);
  observed.job.spec.start_deadline_seconds = 30;
  Exit(observed, 1, 137);
  const Decision lost = Reconcile(observed);
  EXPECT_EQ(ConditionOf(lost, "Failed"), "");
  observed = After(observed, lost);
  observed.now += seconds(30);
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "Failed"), "True StartDeadlineExceeded");
  EXPECT_THAT(MessageOf(decision, "Failed"), HasSubstr("digits-1-1"));
}

TEST(DeadlineTest, CountsTheStartFromTheEndOfARoundThatEndedWithoutALoss) {
  Observed observed = Training(1);
  observed.job.spec.start_deadline_seconds = 30;
  observed.now += seconds(600);
  for (v1::Condition& condition : observed.job.status->conditions) {
    if (condition.type != kConditionTraining) continue;
    condition.status = "False";
    condition.last_transition_time = observed.now;
  }
  View(observed, 0).ready.reset();
  EXPECT_EQ(ConditionOf(Reconcile(observed), "Failed"), "");
  observed.now += seconds(30);
  EXPECT_EQ(ConditionOf(Reconcile(observed), "Failed"), "True StartDeadlineExceeded");
}

TEST(DeadlineTest, LeavesARunningJobAlone) {
  Observed observed = Training(1);
  observed.job.spec.start_deadline_seconds = 1;
  EXPECT_EQ(ConditionOf(Reconcile(observed), "Failed"), "");
}

}  // namespace
}  // namespace ringmaster::reconcile
