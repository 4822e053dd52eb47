#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::Contains;
using ::testing::Not;
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

}  // namespace
}  // namespace ringmaster::reconcile
