#include "operator/api/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "operator/api/testing.h"

namespace ringmaster::api {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;
using training::v1alpha1::LaunchMode;

std::string Errors(std::string_view text, const ParseOptions& options = {}) {
  const auto parsed = ParseManifest(text, "broken.yaml", options);
  return parsed.ok() ? "" : Message(parsed.status());
}

TEST(ParseManifestTest, FillsInSchemaAndDerivedDefaults) {
  const auto parsed = ParseManifest(kDigits, "job.yaml");
  ASSERT_TRUE(parsed.ok()) << Message(parsed.status());
  const auto& spec = parsed->job.spec;
  EXPECT_EQ(spec.workers.replicas, 4);
  EXPECT_EQ(spec.workers.min_replicas, 1);
  EXPECT_EQ(spec.workers.max_replicas, 4);
  EXPECT_EQ(spec.launch->mode, LaunchMode::kNative);
  EXPECT_EQ(spec.trainer->batch.shards, 4);
  EXPECT_EQ(spec.trainer->optimizer.sgd->momentum, 0.9);
  EXPECT_EQ(spec.checkpoint.keep, 3);
  EXPECT_EQ(parsed->job.metadata["name"], "digits");
}

TEST(ParseManifestTest, StoresNoDerivedDefaults) {
  const auto parsed = ParseManifest(kDigits, "job.yaml");
  ASSERT_TRUE(parsed.ok());
  EXPECT_FALSE(parsed->object["spec"]["workers"].contains("maxReplicas"));
  EXPECT_FALSE(parsed->object["spec"]["trainer"]["batch"].contains("shards"));
  EXPECT_EQ(parsed->object["spec"]["cleanPodPolicy"], "Running");
}

TEST(ParseManifestTest, ReportsEveryProblemWithItsLine) {
  constexpr char kBroken[] = R"(apiVersion: training.ringmaster.dev/v1alpha1
kind: TrainingJob
metadata:
  name: Digits-
  lables: {team: vision}
spec:
  workers:
    replicas: four
    minReplicas: 9
    maxReplicas: 8
  cleanPodPolicy: running
  trainer:
    model: {zoo: {name: lenet-bm}}
    data: {csv: {path: digits.csv, classes: 1, shape: [1, 8, 8]}}
    optimizer:
      sgd:
        learningRate: 0
        momentun: 0.9
    batch: {size: 4}
    epochs: 3
    steps: 10
)";
  EXPECT_EQ(
      Errors(kBroken),
      R"(broken.yaml:4: metadata.name: 'Digits-' must be lower-case letters, digits and '-', start with a letter and end with a letter or digit
broken.yaml:5: metadata.lables: unknown field; did you mean labels?
broken.yaml:8: spec.workers.replicas: must be an integer, not a string ("four")
broken.yaml:9: spec.workers.minReplicas: 9 is more than maxReplicas (8); lower it or raise maxReplicas
broken.yaml:11: spec.cleanPodPolicy: "running" is not one of Running, All, None; did you mean Running?
broken.yaml:12: spec.trainer: set at most one of epochs, steps (epochs and steps are set); keep one of them
broken.yaml:13: spec.trainer.model.zoo.name: "lenet-bm" is not one of lenet, lenet-bn, alexnet, vgg-16, resnet-18, resnet-50, densenet-121, gpt-2; did you mean lenet-bn?
broken.yaml:14: spec.trainer.data.csv.classes: 1 is less than 2
broken.yaml:17: spec.trainer.optimizer.sgd.learningRate: 0 is not more than 0
broken.yaml:18: spec.trainer.optimizer.sgd.momentun: unknown field; did you mean momentum?)");
}

TEST(ParseManifestTest, ChecksMeaningBesideAMisspeltField) {
  std::string text = kDigits;
  text.replace(text.find("momentum"), 8, "momentun");
  text.replace(text.find("size: 64"), 8, "size: 3");
  text.replace(text.find("name: digits"), 12, "name: 1digit");
  const std::string errors = Errors(text);
  EXPECT_THAT(errors, HasSubstr("broken.yaml:15: spec.trainer.optimizer.sgd.momentun: unknown "
                                "field; did you mean momentum?"));
  EXPECT_THAT(errors,
              HasSubstr("broken.yaml:16: spec.trainer.batch.size: 3 is less than the 4 workers"));
}

TEST(ParseManifestTest, RefusesBothATrainerAndACommandAndNeither) {
  constexpr char kHead[] =
      "apiVersion: training.ringmaster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: "
      "a}\nspec:\n";
  EXPECT_THAT(Errors(std::string(kHead) + "  suspend: true\n"),
              HasSubstr("broken.yaml:4: spec: set exactly one of trainer, "
                        "workers.template.spec.containers[0].command (none is set); "
                        "give spec.trainer"));
  std::string both = kDigits;
  both.replace(both.find("minReplicas: 1"), 14, "template: {spec: {containers: [{command: [x]}]}}");
  EXPECT_THAT(Errors(both),
              HasSubstr("(trainer and workers.template.spec.containers[0].command are set)"));
}

TEST(ParseManifestTest, SaysOnlyThatAFileHoldsAnotherKind) {
  EXPECT_EQ(Errors("apiVersion: apps/v1\nkind: Deployment\nspec: {selector: {}}\n"),
            "broken.yaml:1: apiVersion: \"apps/v1\" is not training.ringmaster.dev/v1alpha1\n"
            "broken.yaml:2: kind: \"Deployment\" is not TrainingJob");
  EXPECT_EQ(Errors(""), "broken.yaml: the manifest is empty");
  EXPECT_THAT(Errors("- a\n"), HasSubstr("broken.yaml:1: a manifest is an object"));
}

TEST(ParseManifestTest, IgnoresAStatus) {
  const auto parsed = ParseManifest(std::string(kDigits) + "status: {round: 7}\n", "job.yaml");
  ASSERT_TRUE(parsed.ok()) << Message(parsed.status());
  EXPECT_FALSE(parsed->job.status.has_value());
}

TEST(ParseManifestTest, AppliesAssignmentsBeforeItChecks) {
  const auto parsed = ParseManifest(
      kDigits, "job.yaml", {.set = {"spec.workers.replicas=2", "spec.trainer.epochs=0.5"}});
  ASSERT_TRUE(parsed.ok()) << Message(parsed.status());
  EXPECT_EQ(parsed->job.spec.workers.max_replicas, 2);
  EXPECT_EQ(parsed->job.spec.trainer->epochs, 0.5);
  EXPECT_EQ(Errors(kDigits, {.set = {"spec.trainer.epoch=3", "spec.workers.minReplicas=9"}}),
            "--set spec.trainer.epoch: unknown field; did you mean epochs?\n"
            "broken.yaml:8: spec.workers.minReplicas: 9 is more than replicas (4); lower it or "
            "raise replicas "
            "(set on the command line)");
}

TEST(ParseManifestTest, RefusesAMissingName) {
  std::string text = kDigits;
  text.replace(text.find("  name: digits"), 14, "  namespace: a");
  EXPECT_THAT(Errors(text),
              Eq("broken.yaml:3: metadata.name: required, but missing: the object's name"));
}

}  // namespace
}  // namespace ringmaster::api
