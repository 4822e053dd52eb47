#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using namespace reconcile::testing;

int Services(const Decision& decision) {
  int count = 0;
  for (const Action& action : decision.actions)
    count += std::holds_alternative<CreateService>(action);
  return count;
}

TEST(ServiceTest, IsMadeForForeignProgramsOnly) {
  Observed observed = Created(1);
  EXPECT_EQ(Services(Reconcile(observed)), 0);
  observed.job.spec.trainer.reset();
  EXPECT_EQ(Services(Reconcile(observed)), 1);
  observed.services.push_back(
      std::make_shared<const kube::Json>(kube::Json{{"metadata", {{"name", "digits"}}}}));
  EXPECT_EQ(Services(Reconcile(observed)), 0);
}

}  // namespace
}  // namespace ringmaster::reconcile
