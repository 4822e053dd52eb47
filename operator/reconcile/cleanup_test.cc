#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace reconcile::testing;

Observed Over(v1::CleanPodPolicy policy) {
  Observed observed = Training(2);
  observed.job.spec.clean_pod_policy = policy;
  observed.job.status->conditions = {{.type = "Failed", .status = "True"}};
  observed.job.status->completion_time = observed.now;
  Exit(observed, 1, 1);
  return observed;
}

TEST(CleanupTest, DeletesByPolicy) {
  using Policy = v1::CleanPodPolicy;
  EXPECT_THAT(DeletedPods(Reconcile(Over(Policy::kAll))), ElementsAre("digits-0-0", "digits-1-0"));
  EXPECT_THAT(DeletedPods(Reconcile(Over(Policy::kRunning))), ElementsAre("digits-0-0"));
  EXPECT_THAT(DeletedPods(Reconcile(Over(Policy::kNone))), IsEmpty());
}

TEST(CleanupTest, StopsWorkersWhosePodsStay) {
  EXPECT_EQ(CountCommands<StopCommand>(Reconcile(Over(v1::CleanPodPolicy::kNone))), 2);
}

TEST(CleanupTest, ChangesNothingInTheStatusOfAJobThatIsOverAndClean) {
  Observed observed = Over(v1::CleanPodPolicy::kAll);
  observed = After(observed, Reconcile(observed));
  observed = After(observed, Reconcile(observed));
  EXPECT_EQ(Reconcile(observed).status, observed.job.status);
}

}  // namespace
}  // namespace ringmaster::reconcile
