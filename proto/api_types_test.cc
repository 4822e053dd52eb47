#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/contract.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::training::v1alpha1 {
namespace {

using Json = nlohmann::json;

Json MinimalJob() {
  return Json::parse(R"({
    "apiVersion": "training.ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "digits", "uid": "u"},
    "spec": {"workers": {"template": {"spec": {"containers": [{"name": "w", "command": ["train"], "big": 9007199254740993}]}}}}
  })");
}

TEST(ApiTypesTest, KnowTheGroupAndKindOfTheContract) {
  const auto& resource = *SchemaOf<TrainingJob>().resource;
  EXPECT_EQ(resource.ApiVersion(), contract::kApiVersion);
  EXPECT_EQ(resource.group, contract::kApiGroup);
  EXPECT_EQ(resource.kind, contract::kKind);
  EXPECT_EQ(TrainingJobSpec().managed_by, contract::kControllerName);
}

TEST(ApiTypesTest, DefaultConstructedStructsEqualDecodedDefaults) {
  const auto job = FromJson<TrainingJob>(MinimalJob());
  ASSERT_TRUE(job.ok()) << Message(job.status());
  TrainingJobSpec expected;
  expected.workers.template_ = MinimalJob()["spec"]["workers"]["template"];
  EXPECT_EQ(job->spec, expected);
  EXPECT_FALSE(job->status.has_value());
}

TEST(ApiTypesTest, PassThePodTemplateThroughWhole) {
  const auto job = FromJson<TrainingJob>(MinimalJob());
  ASSERT_TRUE(job.ok());
  const Json written = ToJson(*job);
  EXPECT_EQ(written["spec"]["workers"]["template"], MinimalJob()["spec"]["workers"]["template"]);
  EXPECT_EQ(written["metadata"], MinimalJob()["metadata"]);
  EXPECT_EQ(written["kind"], "TrainingJob");
  EXPECT_EQ(*FromJson<TrainingJob>(written), *job);
}

TEST(ApiTypesTest, PrintZerosAndLeaveOutWhatIsNotFinite) {
  TrainingProgress progress;
  progress.loss = std::nan("");
  progress.samples_per_second = std::numeric_limits<double>::infinity();
  const Json json = ToJson(progress);
  EXPECT_EQ(json["step"], 0);
  EXPECT_EQ(json["summary"], "");
  EXPECT_FALSE(json.contains("loss"));
  EXPECT_FALSE(json.contains("samplesPerSecond"));
  EXPECT_FALSE(json.contains("accuracy"));
}

TEST(ApiTypesTest, KeepListsMapsTimesAndWideIntegers) {
  TrainingJobStatus status;
  status.observed_generation = std::numeric_limits<std::int64_t>::max();
  status.members = {{.rank = 0, .pod = "a", .pod_uid = "u"}, {.rank = 1, .pod = "b"}};
  status.restarts.emplace().by_cause = {{"Code", 2}};
  status.start_time = ParseTime("2026-01-31T12:00:00.25Z").value();
  const Json json = ToJson(status);
  EXPECT_EQ(json["members"][0]["podUID"], "u");
  EXPECT_EQ(json["startTime"], "2026-01-31T12:00:00.250000Z");
  const auto back = FromJson<TrainingJobStatus>(json);
  ASSERT_TRUE(back.ok()) << Message(back.status());
  EXPECT_EQ(*back, status);
}

TEST(ApiTypesTest, SpellEnumsAsKubernetesDoes) {
  TrainingJobSpec spec;
  spec.launch = Launch{.mode = LaunchMode::kMpi};
  spec.clean_pod_policy = CleanPodPolicy::kUnspecified;
  const Json json = ToJson(spec);
  EXPECT_EQ(json["launch"]["mode"], "MPI");
  EXPECT_EQ(json["successPolicy"], "AllWorkers");
  EXPECT_FALSE(json.contains("cleanPodPolicy"));
}

TEST(ApiTypesTest, RefuseJsonWithEveryProblem) {
  Json json = MinimalJob();
  json["spec"]["workers"]["replicas"] = 0;
  json["spec"]["cleanPodPolicy"] = "Some";
  const auto job = FromJson<TrainingJob>(json);
  EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(job.status()),
            "spec.workers.replicas: 0 is less than 1\nspec.cleanPodPolicy: \"Some\" is not one of "
            "Running, All, None");
}

}  // namespace
}  // namespace ringmaster::training::v1alpha1
