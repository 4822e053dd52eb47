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

std::vector<std::string> Told(const Decision& decision) {
  std::vector<std::string> told;
  for (const Action& action : decision.actions) {
    const auto* event = std::get_if<RecordEvent>(&action);
    if (event != nullptr) told.push_back(event->reason + ": " + event->message);
  }
  return told;
}

TEST(ServiceTest, OneEventTellsOfTheServiceAndThePods) {
  Observed observed = Created(1);
  observed.job.spec.trainer.reset();
  EXPECT_EQ(Told(Reconcile(observed)),
            std::vector<std::string>({"PodsCreated: Created service digits, which gives the pods "
                                      "names, and 1 pod: digits-0-0."}));
  observed = Training(1);
  observed.job.spec.trainer.reset();
  EXPECT_EQ(Told(Reconcile(observed)),
            std::vector<std::string>(
                {"ServiceCreated: Created service digits, which gives the pods names."}));
}

}  // namespace
}  // namespace ringmaster::reconcile
