#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace reconcile::testing;

const std::string kOne(64, '1');
const std::string kTwo(64, '2');

// Two workers that are ready, before the first round.
Observed Joined(const std::string& first, const std::string& second) {
  Observed observed = Training(2);
  observed.job.status->round = 0;
  observed.job.status->members.clear();
  observed.job.status->conditions.clear();
  observed.job.status->shards.reset();
  View(observed, 0).ready->kernels_digest = first;
  View(observed, 1).ready->kernels_digest = second;
  return observed;
}

// Two workers in round 1 of a job whose kernels are kOne; worker 1 runs `second`.
Observed InRound(const std::string& second) {
  Observed observed = Training(2);
  observed.job.status->kernels_digest = kOne;
  View(observed, 0).ready->kernels_digest = kOne;
  View(observed, 1).ready->kernels_digest = second;
  return observed;
}

TEST(KernelsTest, OfTheFirstRoundAreTheJobs) {
  const Decision decision = Reconcile(Joined(kOne, kOne));
  EXPECT_EQ(decision.status->round, 1);
  EXPECT_EQ(decision.status->kernels_digest, kOne);
  EXPECT_EQ(ConditionOf(decision, "SameBits"), "True SameKernels");
}

TEST(KernelsTest, ThatDifferAreRefusedBeforeTheFirstRound) {
  const Decision decision = Reconcile(Joined(kOne, kTwo));
  EXPECT_EQ(decision.status->round, 0);
  EXPECT_EQ(decision.status->kernels_digest, std::nullopt);
  EXPECT_EQ(ConditionOf(decision, "SameBits"), "False OtherKernels");
  EXPECT_THAT(MessageOf(decision, "SameBits"),
              AllOf(HasSubstr("Worker 1 (digits-1-0)"), HasSubstr("222222222222"),
                    HasSubstr("than worker 0 (sha256:111111111111)"), HasSubstr("spec.sameBits")));
  EXPECT_THAT(Events(decision), Contains("OtherKernels"));
  EXPECT_THAT(DeletedPods(decision), ElementsAre("digits-1-0"));
  EXPECT_THAT(CreatedPods(decision), ElementsAre("digits-1-1"));
}

TEST(KernelsTest, ThatDifferFromTheFirstRoundsAreRefusedAtTheExpenseOfHardware) {
  const Decision decision = Reconcile(InRound(kTwo));
  EXPECT_EQ(decision.status->restarts->by_cause.at("Hardware"), 1);
  EXPECT_THAT(MessageOf(decision, "Training"),
              HasSubstr("Worker 1 (digits-1-0, round 1) runs other kernels (sha256:222222222222) "
                        "than the job's first round (sha256:111111111111) and is refused"));
}

TEST(KernelsTest, ThatDifferEndTheJobWhenTheBudgetIsSpent) {
  Observed observed = InRound(kTwo);
  observed.job.spec.restart.hardware = 0;
  EXPECT_EQ(ConditionOf(Reconcile(observed), "Failed"), "True RestartBudgetExhausted");
}

TEST(KernelsTest, ThatDifferAreTakenWhereTheJobAllowsIt) {
  Observed observed = Joined(kOne, kTwo);
  observed.job.spec.same_bits = false;
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(decision.status->round, 1);
  EXPECT_EQ(decision.status->kernels_digest, kOne);
  EXPECT_EQ(ConditionOf(decision, "SameBits"), "False OtherKernels");
  EXPECT_THAT(MessageOf(decision, "SameBits"), HasSubstr("so it is taken"));
}

TEST(KernelsTest, AreSaidOnce) {
  Observed observed = Joined(kOne, kTwo);
  observed.job.spec.same_bits = false;
  observed = After(observed, Reconcile(observed));
  observed = After(observed, Reconcile(observed));
  const Decision again = Reconcile(observed);
  EXPECT_EQ(again.status, observed.job.status);
  EXPECT_THAT(Events(again), Not(Contains("OtherKernels")));
}

TEST(KernelsTest, MatchAgainOnceTheOtherIsReplaced) {
  Observed observed = InRound(kTwo);
  observed.job.spec.same_bits = false;
  observed = After(observed, Reconcile(observed));
  View(observed, 1).ready->kernels_digest = kOne;
  EXPECT_EQ(ConditionOf(Reconcile(observed), "SameBits"), "True SameKernels");
}

TEST(KernelsTest, DoNotMatterToThePlainRing) {
  Observed observed = InRound(kTwo);
  observed.job.status->shards = 0;
  const Decision decision = Reconcile(observed);
  EXPECT_FALSE(decision.status->restarts);
  EXPECT_EQ(ConditionOf(decision, "SameBits"), "");
}

TEST(KernelsTest, DoNotMatterWhereGradientsTravelWithErrorFeedback) {
  for (const bool one_bit : {false, true}) {
    Observed observed = InRound(kTwo);
    auto& gradients = observed.job.spec.trainer->gradients;
    if (one_bit) {
      gradients.one_bit.emplace();
    } else {
      gradients.top_k.emplace();
    }
    const Decision decision = Reconcile(observed);
    EXPECT_FALSE(decision.status->restarts);
    EXPECT_EQ(ConditionOf(decision, "SameBits"), "False ErrorFeedback");
    EXPECT_THAT(Events(decision), Not(Contains("ErrorFeedback")));
    EXPECT_EQ(Reconcile(After(observed, decision)).status, After(observed, decision).job.status)
        << "said once";
  }
}

TEST(KernelsTest, OfCompressedGradientsMatter) {
  Observed observed = InRound(kTwo);
  observed.job.spec.trainer->gradients.bf16.emplace();
  EXPECT_EQ(Reconcile(observed).status->restarts->by_cause.at("Hardware"), 1);
}

TEST(KernelsTest, ThatAreUnknownAreNoDifference) {
  const Decision decision = Reconcile(InRound(""));
  EXPECT_FALSE(decision.status->restarts);
  EXPECT_THAT(Events(decision), IsEmpty());
}

}  // namespace
}  // namespace ringmaster::reconcile
