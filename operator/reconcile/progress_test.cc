#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using namespace reconcile::testing;
using std::chrono::seconds;

ProgressReport Step(int step, Time time) {
  return {
      .round = 1, .step = step, .total_steps = 400, .loss = 0.5, .step_seconds = 0.1, .time = time};
}

TEST(ProgressTest, IsThatOfTheFurthestMember) {
  Observed observed = Training(2);
  View(observed, 0).progress = Step(7, observed.now);
  View(observed, 1).progress = Step(8, observed.now);
  EXPECT_EQ(Reconcile(observed).status->progress->summary, "8/400");
}

TEST(ProgressTest, IsWrittenOnceAnInterval) {
  Observed observed = Training(1);
  View(observed, 0).progress = Step(7, observed.now);
  observed = After(observed, Reconcile(observed));
  observed.now += std::chrono::milliseconds(400);
  View(observed, 0).progress = Step(9, observed.now);
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(decision.status->progress->step, 7);
  EXPECT_EQ(Wait(decision), std::chrono::milliseconds(600));
}

TEST(ProgressTest, IsNoNewerWhereWorkersSayItAgainToANewOperator) {
  Observed observed = Training(2);
  observed.now += seconds(1);
  View(observed, 0).progress = Step(7, observed.now);
  View(observed, 1).progress = Step(8, observed.now);
  observed = After(observed, Reconcile(observed));
  const Time said = observed.now;
  observed.now += seconds(10);
  View(observed, 1).progress.reset();  // the other dials in later
  View(observed, 0).progress = Step(7, observed.now);
  EXPECT_EQ(Reconcile(observed).status, observed.job.status);
  View(observed, 1).progress = Step(8, observed.now);
  EXPECT_EQ(Reconcile(observed).status->progress->updated_at, said);
  View(observed, 1).progress = Step(9, observed.now);
  EXPECT_EQ(Reconcile(observed).status->progress->updated_at, observed.now);
}

TEST(ProgressTest, TakesALaterStepThatIsSaidInTheSameMoment) {
  Observed observed = Training(1);
  View(observed, 0).progress = Step(110, observed.now);
  observed = After(observed, Reconcile(observed));
  EXPECT_EQ(Reconcile(observed).status, observed.job.status);
  View(observed, 0).progress = Step(400, observed.now);
  EXPECT_EQ(Reconcile(observed).status->progress->step, 400);
}

TEST(ProgressTest, GoesBackWithTheStepsThatARoundComputesAgain) {
  Observed observed = Training(2);
  observed.now += seconds(1);
  View(observed, 0).progress = Step(170, observed.now);
  View(observed, 1).progress = Step(170, observed.now);
  observed = After(observed, Reconcile(observed));
  observed.now += seconds(10);
  View(observed, 0).progress = Step(161, observed.now);
  View(observed, 1).progress = Step(162, observed.now);
  EXPECT_EQ(Reconcile(observed).status->progress->step, 162);
}

TEST(ProgressTest, HoldsTheLastEvaluation) {
  Observed observed = Training(1);
  View(observed, 0).progress = Step(7, observed.now);
  View(observed, 0).progress->evaluation =
      EvaluationReport{.step = 5, .loss = 0.4, .accuracy = 0.9, .top5_accuracy = 0.99};
  EXPECT_EQ(Reconcile(observed).status->progress->evaluation,
            (v1::EvaluationResult{.step = 5, .loss = 0.4, .accuracy = 0.9, .top5_accuracy = 0.99}));
}

TEST(ProgressTest, DoesNotListenToAnEarlierRound) {
  Observed observed = Training(1);
  observed.job.status->round = 2;
  View(observed, 0).progress = Step(7, observed.now);
  EXPECT_FALSE(Reconcile(observed).status->progress);
}

TEST(ProgressTest, CountsTheStepsThatALossHasCostAgain) {
  Observed observed = Training(1);
  observed.job.status->progress =
      v1::TrainingProgress{.step = 50, .updated_at = observed.now - seconds(70)};
  View(observed, 0).progress = Step(41, observed.now);
  const v1::LostSeconds lost = *Reconcile(observed).status->lost_seconds;
  EXPECT_DOUBLE_EQ(lost.restore, 60);  // since the round began
  EXPECT_NEAR(lost.replay, 0.9, 1e-9);
}

}  // namespace
}  // namespace ringmaster::reconcile
