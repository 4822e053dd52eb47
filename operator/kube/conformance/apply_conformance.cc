// Conformance of server-side apply.
#include "operator/kube/conformance/client_conformance.h"
#include "operator/kube/errors.h"

namespace ringmaster::kube::conformance {
namespace {

TEST_P(ClientConformance, ApplyCreatesWhatIsNotThere) {
  const auto applied =
      client().Apply(kConfigMap, ConfigMap("a", {{"k", "1"}}), {.field_manager = "one"});
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_EQ(Get(kConfigMap, "a")["data"]["k"], "1");
}

TEST_P(ClientConformance, ApplyingTheSameTwiceChangesNothing) {
  const Json first =
      Must(client().Apply(kConfigMap, ConfigMap("a", {{"k", "1"}}), {.field_manager = "one"}));
  const Json second =
      Must(client().Apply(kConfigMap, ConfigMap("a", {{"k", "1"}}), {.field_manager = "one"}));
  EXPECT_EQ(ResourceVersion(first), ResourceVersion(second));
}

TEST_P(ClientConformance, ApplyRemovesTheFieldsThatTheManagerLeavesOut) {
  ASSERT_TRUE(
      client()
          .Apply(kConfigMap, ConfigMap("a", {{"k", "1"}, {"gone", "x"}}), {.field_manager = "one"})
          .ok());
  ASSERT_TRUE(
      client().Apply(kConfigMap, ConfigMap("a", {{"other", "2"}}), {.field_manager = "two"}).ok());
  const Json applied =
      Must(client().Apply(kConfigMap, ConfigMap("a", {{"k", "1"}}), {.field_manager = "one"}));
  EXPECT_EQ(applied["data"], Json({{"k", "1"}, {"other", "2"}}));
}

TEST_P(ClientConformance, ApplyRefusesAFieldOfAnotherManagerUnlessForced) {
  ASSERT_TRUE(
      client().Apply(kConfigMap, ConfigMap("a", {{"k", "1"}}), {.field_manager = "one"}).ok());
  const auto refused =
      client().Apply(kConfigMap, ConfigMap("a", {{"k", "2"}}), {.field_manager = "two"});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kAborted);
  const auto forced = client().Apply(kConfigMap, ConfigMap("a", {{"k", "2"}}),
                                     {.field_manager = "two", .force = true});
  ASSERT_TRUE(forced.ok()) << forced.status();
  EXPECT_EQ((*forced)["data"]["k"], "2");
  EXPECT_EQ(client()
                .Apply(kConfigMap, ConfigMap("a", {{"k", "3"}}), {.field_manager = "one"})
                .status()
                .code(),
            absl::StatusCode::kAborted);
}

TEST_P(ClientConformance, ManagersMayShareAFieldOfTheSameValue) {
  ASSERT_TRUE(
      client().Apply(kConfigMap, ConfigMap("a", {{"k", "1"}}), {.field_manager = "one"}).ok());
  ASSERT_TRUE(
      client().Apply(kConfigMap, ConfigMap("a", {{"k", "1"}}), {.field_manager = "two"}).ok());
  const Json left = Must(client().Apply(kConfigMap, ConfigMap("a"), {.field_manager = "one"}));
  EXPECT_EQ(left["data"]["k"], "1");
}

TEST_P(ClientConformance, ApplyMergesServicePortsByNumberAndProtocol) {
  const auto service = [this](const Json& port) {
    Json object = NewObject(kService, Key("s"));
    object["spec"] = {{"clusterIP", "None"}, {"ports", {port}}};
    return object;
  };
  const Json http = {{"name", "http"}, {"port", 80}, {"protocol", "TCP"}};
  const Json metrics = {{"name", "metrics"}, {"port", 90}, {"protocol", "TCP"}};
  ASSERT_TRUE(client().Apply(kService, service(http), {.field_manager = "one"}).ok());
  const auto both = client().Apply(kService, service(metrics), {.field_manager = "two"});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ((*both)["spec"]["ports"].size(), 2u);
}

TEST_P(ClientConformance, ApplyNeedsAFieldManager) {
  EXPECT_FALSE(client().Apply(kConfigMap, ConfigMap("a"), {}).ok());
}

}  // namespace
}  // namespace ringmaster::kube::conformance
