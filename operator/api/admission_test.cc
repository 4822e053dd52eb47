#include "operator/api/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "operator/api/testing.h"

namespace ringmaster::api {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

TEST(AdmissionTest, FillsInTheSchemasDefaultsAlone) {
  Json object = ToJson(Digits());
  object["spec"]["workers"].erase("maxReplicas");
  object["spec"].erase("suspend");
  ASSERT_TRUE(AdmitTrainingJob(object, nullptr).ok());
  EXPECT_EQ(object["spec"]["suspend"], false);
  EXPECT_FALSE(object["spec"]["workers"].contains("maxReplicas"));
}

TEST(AdmissionTest, RefusesWithEveryProblem) {
  Json object = ToJson(Digits());
  object["metadata"]["name"] = "1digits";
  object["spec"]["workers"]["template"] =
      Json::parse(R"({"spec": {"containers": [{"command": ["x"]}]}})");
  const absl::Status status = AdmitTrainingJob(object, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status),
              HasSubstr("spec: set exactly one of trainer, "
                        "workers.template.spec.containers[0].command (trainer and"));
  EXPECT_THAT(Message(status), HasSubstr("\nmetadata.name: '1digits' must be"));
}

TEST(AdmissionTest, KeepsImmutableFieldsOnUpdate) {
  const Json current = ToJson(Digits());
  Json object = current;
  object["spec"]["workers"]["replicas"] = 2;
  EXPECT_TRUE(AdmitTrainingJob(object, &current).ok());
  object["spec"]["managedBy"] = "someone.else/x";
  object["spec"]["trainer"]["seed"] = 2;
  const std::string message = Message(AdmitTrainingJob(object, &current));
  EXPECT_THAT(message, HasSubstr("spec.trainer: cannot change once it is set"));
  EXPECT_THAT(message, HasSubstr("spec.managedBy: cannot change once it is set"));
}

}  // namespace
}  // namespace ringmaster::api
