#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace reconcile::testing;

TEST(SuspendTest, DrainsBeforeItDeletes) {
  Observed observed = Training(2);
  observed.job.spec.suspend = true;
  const Decision drain = Reconcile(observed);
  EXPECT_EQ(CountCommands<DrainCommand>(drain), 2);
  EXPECT_THAT(DeletedPods(drain), IsEmpty());
  observed = After(observed, drain);
  for (const int index : {0, 1}) View(observed, index).drained_step = 7;
  const Decision gone = Reconcile(observed);
  EXPECT_THAT(DeletedPods(gone), ElementsAre("digits-0-0", "digits-1-0"));
  EXPECT_EQ(ConditionOf(gone, "Suspended"), "True Suspended");
  EXPECT_EQ(ConditionOf(gone, "Draining"), "");
  EXPECT_FALSE(gone.status->start_time);
}

TEST(SuspendTest, DrainsNobodyOutsideARound) {
  Observed observed = Created(2);
  observed = After(observed, Reconcile(observed));
  observed.job.spec.suspend = true;
  EXPECT_THAT(DeletedPods(Reconcile(observed)), ElementsAre("digits-0-0", "digits-1-0"));
}

TEST(SuspendTest, ResumesWithNewPodsWhileTheOldOnesAreStillGoing) {
  Observed observed = Training(1);
  observed.job.spec.suspend = true;
  View(observed, 0).drained_step = 7;
  observed.job.status = Reconcile(observed).status;
  Pod(observed, 0)["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z";
  observed.job.spec.suspend = false;
  const Decision decision = Reconcile(observed);
  EXPECT_THAT(CreatedPods(decision), ElementsAre("digits-0-1"));
  EXPECT_FALSE(decision.status->restarts);
}

}  // namespace
}  // namespace ringmaster::reconcile
