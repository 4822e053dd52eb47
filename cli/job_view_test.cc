#include "cli/job_view.h"

#include <memory>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/contract.h"

namespace ringmaster::cli {
namespace {

using kube::Json;

kube::ObjectPtr Pod(int index, int incarnation, const std::string& phase, int exit_code = 0) {
  Json pod = {{"metadata",
               {{"name", "digits-" + std::to_string(index) + "-" + std::to_string(incarnation)},
                {"uid", "u" + std::to_string(index) + std::to_string(incarnation)},
                {"labels",
                 {{contract::kLabelIndex, std::to_string(index)},
                  {contract::kLabelIncarnation, std::to_string(incarnation)}}}}},
              {"status", {{"phase", phase}}}};
  if (phase == "Failed") {
    pod["status"]["containerStatuses"] =
        Json::array({{{"state", {{"terminated", {{"exitCode", exit_code}}}}}}});
  }
  return std::make_shared<const Json>(pod);
}

training::v1alpha1::TrainingJob Job() {
  training::v1alpha1::TrainingJob job;
  job.spec.workers.replicas = 2;
  job.status.emplace();
  job.status->state = "Running";
  job.status->progress.emplace();
  job.status->progress->step = 10;
  job.status->progress->total_steps = 100;
  return job;
}

reconcile::WorkersView WorkerAt(const std::string& uid, int64_t step) {
  reconcile::WorkersView workers;
  reconcile::WorkerView& worker = workers.workers.emplace_back();
  worker.pod_uid = uid;
  worker.connected = true;
  worker.round = 1;
  worker.progress.emplace();
  worker.progress->step = step;
  worker.progress->total_steps = 100;
  worker.progress->step_seconds = 0.004;
  return workers;
}

TEST(JobViewTest, WorkerIsShownByItsLatestIncarnation) {
  const JobView view = ViewOf(
      "digits", Job(), {Pod(0, 0, "Failed", 137), Pod(0, 1, "Running"), Pod(1, 0, "Failed", 3)},
      WorkerAt("u01", 12));
  ASSERT_EQ(view.members.size(), 2u);
  EXPECT_EQ(view.members[0].state, WorkerState::kRunning);
  EXPECT_DOUBLE_EQ(view.members[0].step_seconds, 0.004);
  EXPECT_EQ(view.members[1].state, WorkerState::kLost);
  EXPECT_EQ(view.members[1].note, "exit code 3");
}

TEST(JobViewTest, ProgressIsTheFurthestThatAnyoneReported) {
  EXPECT_EQ(ViewOf("digits", Job(), {}, WorkerAt("u00", 12)).step, 12);
  EXPECT_EQ(ViewOf("digits", Job(), {}, WorkerAt("u00", 8)).step, 10);
}

TEST(JobViewTest, MeasureIsWhatTheDataIsJudgedBy) {
  training::v1alpha1::TrainerConfig trainer;
  trainer.data.csv.emplace();
  trainer.data.csv->classes = 10;
  training::v1alpha1::EvaluationResult result{.accuracy = 0.9, .top5_accuracy = 0.991};
  EXPECT_FALSE(MeasureOf(trainer, result)) << "accuracy says it all";
  trainer.evaluation.metric = training::v1alpha1::Metric::kTop5;
  EXPECT_EQ(MeasureOf(trainer, result), "top-5 99.1 %");
  EXPECT_EQ(MeasureOf(trainer, std::nullopt), "");
  trainer.evaluation.metric.reset();
  trainer.data.csv->classes = 2;
  result = {.auroc = 0.9124};
  EXPECT_EQ(MeasureOf(trainer, result), "AUROC 0.912");
  trainer.data.csv.reset();
  trainer.data.text.emplace();
  result = {.top5_accuracy = 0.5, .perplexity = 7.8361};
  EXPECT_EQ(MeasureOf(trainer, result), "perplexity 7.836");
}

TEST(JobViewTest, MeasureIsThatOfTheFurthestWorkersLastEvaluation) {
  training::v1alpha1::TrainingJob job = Job();
  job.spec.trainer.emplace();
  job.spec.trainer->data.text.emplace();
  job.status->progress->evaluation.emplace();
  job.status->progress->evaluation->perplexity = 9;
  reconcile::WorkersView workers = WorkerAt("u00", 12);
  EXPECT_EQ(ViewOf("lm", job, {}, workers).measure, "perplexity 9");
  workers.workers[0].progress->evaluation = reconcile::EvaluationReport{.perplexity = 8};
  EXPECT_EQ(ViewOf("lm", job, {}, workers).measure, "perplexity 8");
}

TEST(JobViewTest, PodsBeyondTheWantedNumberAreNotShown) {
  EXPECT_EQ(ViewOf("digits", Job(), {Pod(2, 0, "Running")}, {}).members.size(), 0u);
}

TEST(JobViewTest, DeathBySignalIsNamed) {
  EXPECT_EQ(HowItEnded(*Pod(0, 0, "Failed", 137)), "killed (SIGKILL)");
}

}  // namespace
}  // namespace ringmaster::cli
