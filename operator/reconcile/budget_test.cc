#include "operator/reconcile/budget.h"

#include <gtest/gtest.h>

namespace ringmaster::reconcile {
namespace {

using std::chrono::seconds;
using training::v1alpha1::Incident;

TEST(BudgetTest, CountsOneCauseWithinTheWindow) {
  const Time now = FakeClock().Now();
  const std::vector<Incident> recent = {{.cause = "Code", .time = now - seconds(10)},
                                        {.cause = "Hang", .time = now - seconds(3)},
                                        {.cause = "Code", .time = now - seconds(2)}};
  EXPECT_EQ(CountWithin(recent, Cause::kCode, seconds(10), now), 1);
  EXPECT_EQ(CountWithin(recent, Cause::kCode, seconds(11), now), 2);
}

TEST(BudgetTest, LetsPreemptionCostNothing) {
  EXPECT_FALSE(BudgetOf({}, Cause::kPreemption));
  EXPECT_EQ(BudgetOf({.hang = 4}, Cause::kHang), 4);
}

TEST(BudgetTest, ForgetsOldIncidentsButForTheLatest) {
  const Time now = FakeClock().Now();
  std::vector<Incident> recent;
  for (int i = 0; i < 20; ++i) recent.push_back({.round = i, .time = now - seconds(100 - i)});
  Prune(recent, seconds(50), now);
  EXPECT_EQ(recent.size(), 8u);
  EXPECT_EQ(recent.back().round, 19);
}

TEST(BudgetTest, KeepsABoundedNumberOfIncidentsHoweverManyTheWindowHolds) {
  const Time now = FakeClock().Now();
  std::vector<Incident> recent(1000, Incident{.time = now});
  Prune(recent, seconds(50), now);
  EXPECT_EQ(recent.size(), 256u);
}

}  // namespace
}  // namespace ringmaster::reconcile
