#include "operator/node/pod_plan.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/file.h"
#include "common/status.h"
#include "common/temporary_folder.h"
#include "operator/node/volumes.h"

namespace ringmaster::node {
namespace {

using kube::Json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

PlanContext Context() {
  PlanContext context;
  context.pod_ip = "127.77.0.2";
  context.host_ip = "127.77.0.1";
  context.node_name = "local";
  context.bin_directory = "/opt/bin";
  context.workspace = "/home/me/job";
  context.log_directory = "/run/logs";
  context.volume_directory = "/run/volumes/w-0";
  context.environment = {{"PATH", "/usr/bin"}};
  context.read = [](const kube::ResourceType& type,
                    const std::string& name) -> absl::StatusOr<Json> {
    if (name == "settings") return Json{{"kind", "ConfigMap"}, {"data", {{"rate", "0.1"}}}};
    if (name == "token") return Json{{"kind", "Secret"}, {"data", {{"key", "aGk="}}}};
    return absl::NotFoundError(std::string(type.kind) + " " + name);
  };
  return context;
}

Json Pod(const std::string& container_fields, const std::string& spec_fields = "") {
  const std::string comma = container_fields.empty() ? "" : ", ";
  const std::string spec_comma = spec_fields.empty() ? "" : ", ";
  return Json::parse(
      R"({"metadata": {"name": "w-0", "namespace": "default", "uid": "u1", "labels": {"a": "b"}},
                         "spec": {"containers": [{"name": "worker")" +
      comma + container_fields + "}]" + spec_comma + spec_fields + "}}");
}

TEST(PodPlanTest, CommandAndArgumentsAreExpandedFromTheEnvironment) {
  const auto plan =
      PlanPod(Pod(R"j("command": ["train", "$(RATE)"], "args": ["$$(RATE)", "$(NONE)"],
                                   "env": [{"name": "RATE", "value": "0.1"}])j"),
              Context());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->containers[0].process.argv, ElementsAre("train", "0.1", "$(RATE)", "$(NONE)"));
}

TEST(PodPlanTest, ContainerWithoutACommandRunsTheLauncherInTheWorkspace) {
  const auto plan = PlanPod(Pod(""), Context());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->containers[0].process.argv, ElementsAre("ringmaster-launcher"));
  EXPECT_EQ(plan->containers[0].process.directory, "/home/me/job");
  EXPECT_EQ(plan->containers[0].process.log_path, "/run/logs/w-0.log");
  EXPECT_THAT(plan->containers[0].process.environment, Contains("PATH=/opt/bin:/usr/bin"));
}

TEST(PodPlanTest, EnvironmentComesFromThePodConfigMapsAndSecrets) {
  const auto plan = PlanPod(Pod(R"("env": [
      {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
      {"name": "UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
      {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}},
      {"name": "RATE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "rate"}}},
      {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "token", "key": "key"}}},
      {"name": "NONE", "valueFrom": {"configMapKeyRef": {"name": "absent", "key": "x", "optional": true}}}])"),
                            Context());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->containers[0].process.environment,
              ElementsAre("IP=127.77.0.2", "KEY=hi", "LABEL=b", "PATH=/opt/bin:/usr/bin",
                          "RATE=0.1", "UID=u1"));
}

TEST(PodPlanTest, MissingConfigMapIsNamedAndWorthARetry) {
  const auto plan = PlanPod(
      Pod(R"("env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "absent", "key": "x"}}}])"),
      Context());
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(plan.status()), HasSubstr("env[X]: ConfigMap absent"));
}

TEST(PodPlanTest, FieldThatCannotBeHonouredIsRefusedByName) {
  EXPECT_THAT(Message(PlanPod(Pod(R"("livenessProbe": {})"), Context()).status()),
              HasSubstr("spec.containers[worker].livenessProbe"));
  EXPECT_THAT(Message(PlanPod(Pod("", R"("initContainers": [])"), Context()).status()),
              HasSubstr("spec.initContainers"));
  EXPECT_THAT(
      Message(PlanPod(Pod("", R"("volumes": [{"name": "v", "nfs": {}}])"), Context()).status()),
      HasSubstr("spec.volumes[v]"));
  EXPECT_THAT(
      Message(
          PlanPod(Pod(R"("resources": {"limits": {"nvidia.com/gpu": 1}})"), Context()).status()),
      HasSubstr("nvidia.com/gpu"));
}

TEST(PodPlanTest, PathsUnderAMountPointLeadToTheVolume) {
  const auto plan = PlanPod(Pod(R"("command": ["cat", "/data/x", "--from=/data", "/database"],
                                   "volumeMounts": [{"name": "v", "mountPath": "/data"}])",
                                R"("volumes": [{"name": "v", "emptyDir": {}}])"),
                            Context());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->containers[0].process.argv,
              ElementsAre("cat", "/run/volumes/w-0/v/x", "--from=/run/volumes/w-0/v", "/database"));
}

TEST(PodPlanTest, RequestsAddUpOverContainersAndDefaultToLimits) {
  const auto plan =
      PlanPod(Pod(R"("resources": {"limits": {"cpu": "500m", "memory": "64Mi"}})"), Context());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_DOUBLE_EQ(plan->requests.cpus, 0.5);
  EXPECT_DOUBLE_EQ(plan->requests.memory_bytes, 64.0 * (1 << 20));
}

TEST(PodPlanTest, QuantityThatIsNoneIsRefused) {
  for (const char* text : {"", "x", "-1", "1 Mi", "1Q", "inf"})
    EXPECT_FALSE(ParseQuantity(text).ok()) << text;
}

TEST(PodPlanTest, ConfigMapVolumeBecomesFiles) {
  PlanContext context = Context();
  const TemporaryFolder folder = TemporaryFolder::Make().value();
  context.volume_directory = folder.path();
  const Json pod = Pod("", R"("volumes": [{"name": "c", "configMap": {"name": "settings"}}])");
  ASSERT_TRUE(MaterialiseVolumes(pod, context).ok());
  EXPECT_EQ(ReadFile(context.volume_directory + "/c/rate").value(), "0.1");
}

}  // namespace
}  // namespace ringmaster::node
