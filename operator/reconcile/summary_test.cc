#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using namespace reconcile::testing;

TEST(SummaryTest, ChangesNothingWhenNothingButTimeHasPassed) {
  Observed observed = Training(2);
  View(observed, 0).progress =
      ProgressReport{.round = 1, .step = 5, .total_steps = 9, .time = observed.now};
  observed = After(observed, Reconcile(observed));
  observed = After(observed, Reconcile(observed));
  observed.now += std::chrono::hours(1);
  EXPECT_EQ(Reconcile(observed).status, observed.job.status);
}

TEST(SummaryTest, SpeaksOfTheSpecThatItHasSeen) {
  Observed observed = Training(2);
  observed.job.metadata["generation"] = 5;
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(decision.status->observed_generation, 5);
  EXPECT_EQ(decision.status->selector, "training.ringmaster.dev/job=digits");
  EXPECT_EQ(decision.status->workers->summary, "2/2");
  EXPECT_EQ(decision.status->state, "Running");
}

TEST(SummaryTest, CountsNoWorkerOfAnEndedJobAsActiveOnceItsPodsAreGone) {
  Observed observed = Training(2);
  observed.job.spec.active_deadline_seconds = 1;
  const Decision ended = Reconcile(observed);
  ASSERT_EQ(ConditionOf(ended, "Failed"), "True DeadlineExceeded");
  observed = After(observed, ended);
  observed.job.spec.workers.replicas = 7;
  observed.job.metadata["generation"] = 6;
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(decision.status->workers->active, 0);
  EXPECT_EQ(decision.status->workers->summary, "0/2");
  EXPECT_EQ(decision.status->observed_generation, 6);
}

TEST(SummaryTest, CountsLostSecondsFromTheStartAfterASuspension) {
  Observed observed = Training(1);
  observed.job.status->lost_seconds = v1::LostSeconds{.detect = 100};
  observed.job.spec.suspend = true;
  RemovePod(observed, 0);
  EXPECT_FALSE(Reconcile(observed).status->lost_seconds.has_value());
}

TEST(SummaryTest, TakesLostSecondsOffTheGoodput) {
  Observed observed = Training(1);
  observed.job.status->lost_seconds = v1::LostSeconds{.detect = 10, .replay = 5};
  observed.job.status->progress = v1::TrainingProgress{.step = 1, .updated_at = observed.now};
  EXPECT_DOUBLE_EQ(Reconcile(observed).status->goodput, 0.75);
}

}  // namespace
}  // namespace ringmaster::reconcile
