#include "cli/kubectl/job_detail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/contract.h"

namespace ringmaster::cli::kubectl {
namespace {

using kube::Json;
using ::testing::HasSubstr;
using ::testing::Not;

const Time kNow = ParseTime("2026-01-01T00:01:00Z").value();

Json Pod(int index, int incarnation, const std::string& phase) {
  return {{"metadata",
           {{"name", "digits-" + std::to_string(index) + "-" + std::to_string(incarnation)},
            {"uid", "u" + std::to_string(index)},
            {"creationTimestamp", "2026-01-01T00:00:30Z"},
            {"labels",
             {{contract::kLabelIndex, std::to_string(index)},
              {contract::kLabelIncarnation, std::to_string(incarnation)}}}}},
          {"spec", {{"nodeName", "node-7"}}},
          {"status", {{"phase", phase}}}};
}

std::vector<kube::ObjectPtr> Pods(const std::vector<Json>& pods) {
  std::vector<kube::ObjectPtr> pointers;
  for (const Json& pod : pods) pointers.push_back(std::make_shared<const Json>(pod));
  return pointers;
}

Json Job() {
  return {{"apiVersion", "training.ringmaster.dev/v1alpha1"},
          {"kind", "TrainingJob"},
          {"metadata", {{"name", "digits"}, {"namespace", "ml"}}},
          {"spec",
           {{"workers", {{"replicas", 2}}},
            {"trainer",
             {{"model", {{"zoo", {{"name", "lenet-bn"}}}}},
              {"data", {{"csv", {{"path", "x.csv"}, {"classes", 10}, {"shape", {1, 8, 8}}}}}},
              {"optimizer", {{"sgd", {{"learningRate", 0.05}}}}},
              {"batch", {{"size", 64}, {"shards", 4}}},
              {"epochs", 20}}}}}};
}

Json Running() {
  Json job = Job();
  job["status"] = {{"state", "Running"},
                   {"round", 2},
                   {"shards", 4},
                   {"members", {{{"rank", 0}, {"pod", "digits-1-1"}, {"podUID", "u1"}}}},
                   {"progress",
                    {{"step", 268},
                     {"totalSteps", 450},
                     {"epoch", 11.9},
                     {"loss", 0.0812},
                     {"accuracy", 0.972}}},
                   {"checkpoints", {{{"step", 250}, {"time", "2026-01-01T00:00:50Z"}}}},
                   {"conditions",
                    {{{"type", "Training"},
                      {"status", "True"},
                      {"lastTransitionTime", "2026-01-01T00:00:40Z"},
                      {"message", "Round 2: 2 workers, from the checkpoint of step 250."}}}},
                   {"restarts",
                    {{"total", 1},
                     {"recent",
                      {{{"round", 1},
                        {"cause", "Code"},
                        {"pod", "digits-1-0"},
                        {"message", "Worker 1 ended with exit code 3: shapes\ndiffer"},
                        {"time", "2026-01-01T00:00:31Z"}}}}}}};
  return job;
}

TEST(JobDetailTest, ShowsWhatARunningJobDoes) {
  const std::string text = JobDetail(
      Running(), Pods({Pod(0, 0, "Pending"), Pod(1, 0, "Failed"), Pod(1, 1, "Running")}), {}, kNow);
  EXPECT_THAT(text, HasSubstr("digits · batch 64 in 4 shards · 2 workers in namespace ml · seed"));
  EXPECT_THAT(text, HasSubstr("  Running   epoch 12/20  step 268/450   loss 0.081   acc 97.2 %"));
  EXPECT_THAT(text, HasSubstr("  round 2 · 1 restart · checkpoint of step 250, 10 s old\n"));
  EXPECT_THAT(text, HasSubstr("  RANK  WORKER  POD         NODE    STATE    AGE\n"
                              "  –     0       digits-0-0  node-7  Pending  30 s\n"
                              "  0     1       digits-1-1  node-7  Running  30 s\n"));
  EXPECT_THAT(text,
              HasSubstr("  Training   True    20 s  Round 2: 2 workers, from the checkpoint"));
  EXPECT_THAT(text, HasSubstr("  29 s  1      Code   Worker 1 ended with exit code 3: shapes\n"
                              "      differ\n"));
  EXPECT_THAT(text, Not(HasSubstr("weights sha256")));
}

TEST(JobDetailTest, ShowsWhichCheckpointIsTheBest) {
  Json job = Running();
  job["status"]["bestCheckpoint"] = {{"step", 200}, {"metric", "Accuracy"}, {"value", 0.972}};
  EXPECT_THAT(JobDetail(job, {}, {}, kNow),
              HasSubstr(" · checkpoint of step 250, 10 s old · best of step 200 (Accuracy "
                        "0.972)\n"));
}

TEST(JobDetailTest, ShowsWhatPendingPodsAreWarnedOf) {
  const Json warning = {{"involvedObject", {{"uid", "u0"}}},
                        {"lastTimestamp", "2026-01-01T00:00:55Z"},
                        {"reason", "FailedMount"},
                        {"message", "configmap \"settings\" not found"}};
  const auto pods = Pods({Pod(0, 0, "Pending"), Pod(1, 1, "Running")});
  EXPECT_THAT(
      JobDetail(Running(), pods, {warning}, kNow),
      HasSubstr("  PENDING     LAST SEEN  WARNING      MESSAGE\n"
                "  digits-0-0  5.0 s      FailedMount  configmap \"settings\" not found\n"));
}

TEST(JobDetailTest, JobThatNoOperatorHasSeenIsPending) {
  const std::string text = JobDetail(Job(), {}, {}, kNow);
  EXPECT_THAT(text, HasSubstr("digits · batch 64 in 4 shards · 2 workers in namespace ml"));
  EXPECT_THAT(text, HasSubstr("\n  Pending\n"));
  EXPECT_THAT(text, Not(HasSubstr("RANK")));
}

TEST(JobDetailTest, ResultIsTheLineThatScriptsRead) {
  Json job = Job();
  job["status"] = {{"state", "Succeeded"},
                   {"result", {{"weightsSha256", "abc"}, {"steps", 450}, {"accuracy", 0.9944}}}};
  EXPECT_THAT(JobDetail(job, {}, {}, kNow),
              HasSubstr("\nweights sha256:abc steps:450 accuracy:0.994\n"));
}

TEST(JobDetailTest, ObjectThatTheSchemaRefusesIsShownAsFarAsItGoes) {
  Json job = Running();
  job["spec"]["workers"]["replicas"] = "two";
  job["status"]["members"] = 7;
  EXPECT_THAT(JobDetail(job, {}, {}, kNow), HasSubstr("digits"));
  EXPECT_FALSE(JobDetail({{"metadata", {{"name", "x"}}}}, {}, {}, kNow).empty());
}

TEST(PodStateTest, SaysWhyAPodWaitsOrHowItEnded) {
  Json pod = Pod(0, 0, "Pending");
  EXPECT_EQ(PodState(pod), "Pending");
  pod["status"]["conditions"] = {
      {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  EXPECT_EQ(PodState(pod), "Pending: Unschedulable");
  pod["status"]["containerStatuses"] = {{{"state", {{"waiting", {{"reason", "ErrImagePull"}}}}}}};
  EXPECT_EQ(PodState(pod), "Pending: ErrImagePull");
  pod["status"] = {{"phase", "Failed"},
                   {"containerStatuses", {{{"state", {{"terminated", {{"exitCode", 3}}}}}}}}};
  EXPECT_EQ(PodState(pod), "Failed: exit code 3");
  pod = Pod(0, 0, "Running");
  pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:59Z";
  EXPECT_EQ(PodState(pod), "Terminating");
  EXPECT_EQ(PodState(Json::object()), "–");
}

}  // namespace
}  // namespace ringmaster::cli::kubectl
