#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using namespace reconcile::testing;
using std::chrono::seconds;

FinishedReport Finished() {
  return {.round = 1, .weights_sha256 = "5f1c", .steps = 400, .accuracy = 0.978};
}

TEST(CompletionTest, TakesTheResultOnlyWhenAllMembersAreThrough) {
  Observed observed = Training(2);
  View(observed, 0).finished = Finished();
  EXPECT_FALSE(Reconcile(observed).status->result);
  View(observed, 1).finished = Finished();
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(decision.status->result->weights_sha256, "5f1c");
  EXPECT_EQ(ConditionOf(decision, "Succeeded"), "") << "the pods have not ended";
}

TEST(CompletionTest, DoesNotWaitForAWorkerThatIsInNoRoundYet) {
  Observed observed = Training(3);
  observed.job.status->members.pop_back();
  View(observed, 0).finished = Finished();
  View(observed, 1).finished = Finished();
  observed = After(observed, Reconcile(observed));
  ASSERT_TRUE(observed.job.status->result);
  Exit(observed, 0, 0);
  Exit(observed, 1, 0);
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "Succeeded"), "True Completed");
  EXPECT_THAT(DeletedPods(decision), ElementsAre("digits-2-0"));
}

TEST(CompletionTest, BelievesAPodThatEndedWellInARoundWhoseOthersHaveFinished) {
  Observed observed = Training(2);
  View(observed, 0).finished = Finished();
  Exit(observed, 1, 0);
  EXPECT_TRUE(Reconcile(observed).status->result);
}

TEST(CompletionTest, DoesNotWaitForEverForPodsThatWillNotEnd) {
  Observed observed = Training(1);
  View(observed, 0).finished = Finished();
  observed = After(observed, Reconcile(observed));
  observed.now += seconds(30);
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "Succeeded"), "True Completed");
  EXPECT_THAT(DeletedPods(decision), ElementsAre("digits-0-0"));
}

TEST(CompletionTest, SaysWhyTrainingStoppedEarlyAndWhatItMeasured) {
  Observed observed = Training(1);
  FinishedReport finished = Finished();
  finished.stopped_early = "the loss has not fallen in 3 evaluations, since step 200 (0.1)";
  finished.labels = {{.name = "Edema", .auroc = 0.75}, {.name = "Hernia"}};
  finished.evaluation = EvaluationReport{.step = 400, .loss = 0.2, .perplexity = 1.2};
  View(observed, 0).finished = finished;
  View(observed, 0).progress =
      ProgressReport{.round = 1, .step = 400, .total_steps = 900, .time = observed.now};
  observed.job.status->progress =
      v1::TrainingProgress{.step = 390, .updated_at = observed.now - std::chrono::milliseconds(9)};
  const Decision over = Reconcile(observed);
  EXPECT_EQ(over.status->progress->summary, "400/900") << "the last report waits for nothing";
  EXPECT_EQ(over.status->result->evaluation->perplexity, 1.2);
  EXPECT_FALSE(over.status->result->evaluation->auroc);
  EXPECT_THAT(over.status->result->labels,
              ElementsAre(v1::LabelResult{.name = "Edema", .auroc = 0.75},
                          v1::LabelResult{.name = "Hernia"}));
  EXPECT_THAT(Events(over), Contains("StoppedEarly"));
  observed = After(observed, over);
  Exit(observed, 0, 0);
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(MessageOf(decision, "Succeeded"),
            "Trained 400 steps to accuracy 0.9780, and stopped early: the loss has not fallen in 3 "
            "evaluations, since step 200 (0.1); weights sha256:5f1c.");
  EXPECT_THAT(Events(decision), ElementsAre("Completed"));
}

TEST(CompletionTest, SaysHowManyStepsWereLeftOutForALossThatIsNotFinite) {
  for (const auto& [skipped, words] : {std::pair(1, "1 was"), std::pair(3, "3 were")}) {
    Observed observed = Training(1);
    FinishedReport finished = Finished();
    finished.skipped_steps = skipped;
    View(observed, 0).finished = finished;
    View(observed, 0).progress = ProgressReport{.round = 1,
                                                .step = 400,
                                                .total_steps = 400,
                                                .skipped_steps = skipped,
                                                .time = observed.now};
    const Decision over = Reconcile(observed);
    EXPECT_EQ(over.status->progress->skipped_steps, skipped);
    EXPECT_EQ(over.status->result->skipped_steps, skipped);
    observed = After(observed, over);
    Exit(observed, 0, 0);
    EXPECT_EQ(
        MessageOf(Reconcile(observed), "Succeeded"),
        fmt::format("Trained 400 steps, of which {} left out for a loss that is not finite, to "
                    "accuracy 0.9780; weights sha256:5f1c.",
                    words));
  }
}

TEST(CompletionTest, SaysHowManyStepsWereLeftOutWhereThereIsNoAccuracy) {
  for (const std::string why : {"", "no better for 2 evaluations"}) {
    Observed observed = Training(1);
    FinishedReport finished = Finished();
    finished.skipped_steps = 3;
    finished.accuracy = -1;
    finished.stopped_early = why;
    View(observed, 0).finished = finished;
    observed = After(observed, Reconcile(observed));
    Exit(observed, 0, 0);
    EXPECT_EQ(MessageOf(Reconcile(observed), "Succeeded"),
              fmt::format("Trained 400 steps, of which 3 were left out for a loss that is not "
                          "finite{}{}; weights sha256:5f1c.",
                          why.empty() ? "" : ", and stopped early: ", why));
  }
}

TEST(CompletionTest, CountsNoStepsLeftOutWhereNoneWas) {
  Observed observed = Training(1);
  View(observed, 0).finished = Finished();
  View(observed, 0).progress =
      ProgressReport{.round = 1, .step = 400, .total_steps = 400, .time = observed.now};
  const Decision over = Reconcile(observed);
  EXPECT_FALSE(over.status->progress->skipped_steps);
  EXPECT_FALSE(over.status->result->skipped_steps);
}

TEST(CompletionTest, WaitsForNoSidecarOfAProgramAndLetsItGoWithItsPod) {
  Observed observed = Training(2);
  observed.job.spec.trainer.reset();
  observed.job.spec.workers.template_ = kube::Json::parse(
      R"({"spec": {"containers": [{"name": "main", "command": ["true"]}, {"name": "mesh"}]}})");
  const auto end = [&](int index) {
    Pod(observed, index)["status"]["containerStatuses"] = kube::Json::parse(
        R"([{"name": "main", "state": {"terminated": {"exitCode": 0}}},
            {"name": "mesh", "state": {"running": {}}}])");
  };
  end(0);
  EXPECT_EQ(ConditionOf(Reconcile(observed), "Succeeded"), "");
  end(1);
  const Decision decision = Reconcile(observed);
  EXPECT_EQ(ConditionOf(decision, "Succeeded"), "True Completed");
  EXPECT_THAT(DeletedPods(decision), ElementsAre("digits-0-0", "digits-1-0"));
  EXPECT_EQ(decision.status->workers->succeeded, 2);
}

TEST(CompletionTest, IsWorkerZerosWhereThePolicySaysSo) {
  Observed observed = Training(2);
  observed.job.spec.success_policy = v1::SuccessPolicy::kWorkerZero;
  View(observed, 0).finished = Finished();
  Exit(observed, 0, 0);
  EXPECT_EQ(ConditionOf(Reconcile(observed), "Succeeded"), "True Completed");
}

}  // namespace
}  // namespace ringmaster::reconcile
