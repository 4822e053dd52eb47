#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using namespace reconcile::testing;
using std::chrono::seconds;

TEST(TtlTest, DeletesTheJobWhenItsTimeIsOver) {
  Observed observed = Training(1);
  observed.job.spec.ttl_seconds_after_finished = 10;
  observed.job.status->conditions = {{.type = "Succeeded", .status = "True"}};
  observed.job.status->completion_time = observed.now - seconds(4);
  const Decision early = Reconcile(observed);
  EXPECT_EQ(Wait(early), seconds(6));
  observed.now += seconds(6);
  const Decision decision = Reconcile(observed);
  ASSERT_TRUE(std::holds_alternative<DeleteJob>(decision.actions.back()));
  EXPECT_EQ(std::get<DeleteJob>(decision.actions.back()).uid, "uid-of-job");
}

}  // namespace
}  // namespace ringmaster::reconcile
