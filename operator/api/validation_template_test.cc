#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/testing.h"
#include "operator/api/validation.h"

namespace ringmaster::api {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using training::v1alpha1::TrainingJob;

// Each of these made the operator throw where it builds a pod.
TEST(TemplateValidationTest, RefusesATemplateThatTheOperatorCannotWriteInto) {
  const auto problems = [](const char* pod_template) {
    TrainingJob job = Digits();
    job.spec.workers.template_ = Json::parse(pod_template);
    return ProblemLines(job);
  };
  EXPECT_THAT(problems(R"({"metadata": 5})"),
              ElementsAre("spec.workers.template.metadata: must be an object, not an integer (5)"));
  EXPECT_THAT(problems(R"({"metadata": {"labels": [], "annotations": {"a": 1}}})"),
              ElementsAre("spec.workers.template.metadata.labels: must be an object, not a list",
                          "spec.workers.template.metadata.annotations.a: must be a string, not an "
                          "integer (1)"));
  EXPECT_THAT(
      problems(R"({"metadata": {"ownerReferences": {}}})"),
      ElementsAre("spec.workers.template.metadata.ownerReferences: must be a list, not an object"));
  EXPECT_THAT(problems(R"({"spec": "x"})"),
              ElementsAre("spec.workers.template.spec: must be an object, not a string (\"x\")"));
  EXPECT_THAT(problems(R"({"spec": {"containers": {}, "volumes": {}}})"),
              ElementsAre("spec.workers.template.spec.volumes: must be a list, not an object",
                          "spec.workers.template.spec.containers: must be a list, not an object"));
  EXPECT_THAT(
      problems(R"({"spec": {"containers": [null, 5]}})"),
      ElementsAre("spec.workers.template.spec.containers[0]: is missing or null",
                  "spec.workers.template.spec.containers[1]: must be an object, not an integer "
                  "(5)"));
  EXPECT_THAT(
      problems(R"({"spec": {"containers": [{"env": [1, {"name": 2}], "args": "a"}]}})"),
      ElementsAre("spec.workers.template.spec.containers[0].args: must be a list, not a string "
                  "(\"a\")",
                  "spec.workers.template.spec.containers[0].env[0]: must be an object, not an "
                  "integer (1)",
                  "spec.workers.template.spec.containers[0].env[1].name: must be a string, not an "
                  "integer (2)"));
  EXPECT_THAT(problems(R"({"metadata": null, "spec": {"containers": [{"env": null}]}})"),
              IsEmpty());
}

// Each of these would end every worker as it starts.
TEST(TemplateValidationTest, RefusesAVariableOfOursWhoseValueNoWorkerTakes) {
  const auto problems = [](const char* name, const Json& value) {
    TrainingJob job = Digits();
    job.spec.workers.template_ = {
        {"spec", {{"containers", {{{"env", {{{"name", name}, {"value", value}}}}}}}}}};
    return ProblemLines(job);
  };
  const std::string at = "spec.workers.template.spec.containers[0].env[0].value: ";
  EXPECT_THAT(problems("RINGMASTER_COLLECTIVE_ALGORITHM", "rings"),
              ElementsAre(AllOf(StartsWith(at), HasSubstr("'rings' is not one of auto, direct"))));
  EXPECT_THAT(problems("RINGMASTER_PEER_TIMEOUT_SECONDS", "1m"),
              ElementsAre(AllOf(StartsWith(at), HasSubstr("'1m' is not a whole number"))));
  EXPECT_THAT(
      problems("RINGMASTER_PEER_INTERFACE", "10.2.0.0/99"),
      ElementsAre(AllOf(StartsWith(at), HasSubstr("'10.2.0.0/99' is neither the name of"))));
  EXPECT_THAT(problems("RINGMASTER_PEER_TIMEOUT_SECONDS", 60),
              ElementsAre(at + "must be a string, not an integer (60)"));
  EXPECT_THAT(problems("RINGMASTER_COLLECTIVE_ALGORITHM", "ring"), IsEmpty());
  EXPECT_THAT(problems("RINGMASTER_COLLECTIVE_ALGORITHM", ""), IsEmpty());
  EXPECT_THAT(problems("RINGMASTER_PEER_INTERFACE", "$(FAST_NET)"), IsEmpty())
      << "known only to the worker";
  EXPECT_THAT(problems("OF_THE_USER", "rings"), IsEmpty());
}

}  // namespace
}  // namespace ringmaster::api
