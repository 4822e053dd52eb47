#include "operator/reconcile/worker_pod.h"

#include <map>

#include <gtest/gtest.h>

#include "operator/kube/object.h"
#include "operator/reconcile/testing.h"

namespace ringmaster::reconcile {
namespace {

using kube::Json;

std::map<std::string, std::string> Environment(const Json& pod) {
  std::map<std::string, std::string> variables;
  for (const Json& entry : pod["spec"]["containers"][0]["env"]) {
    variables[entry["name"]] = entry.value("value", "");
  }
  return variables;
}

TEST(WorkerPodTest, NeedsNoTemplateForTheNativeTrainer) {
  const Observed observed = testing::Created(1);
  const Json pod = BuildWorkerPod(Pass(observed), 3, 2);
  EXPECT_EQ(kube::Name(pod), "digits-3-2");
  EXPECT_TRUE(kube::IsOwnedBy(pod, "uid-of-job"));
  EXPECT_EQ(pod["spec"]["restartPolicy"], "Never");
  EXPECT_EQ(pod["spec"]["containers"][0]["command"], Json::array({"ringmaster-launcher"}));
  const Json config = Json::parse(Environment(pod)["RINGMASTER_TRAINER_CONFIG"]);
  EXPECT_EQ(config["trainer"]["model"]["zoo"]["name"], "lenet-bn");
  EXPECT_EQ(config["checkpoint"]["directory"], "checkpoints");
}

TEST(WorkerPodTest, GivesTheLauncherLessTimeThanTheTemplateGivesThePod) {
  Observed observed = testing::Created(1);
  EXPECT_FALSE(
      Environment(BuildWorkerPod(Pass(observed), 0, 0)).contains("RINGMASTER_GRACE_SECONDS"));
  for (const auto& [grace, expected] : {std::pair(60, "55"), std::pair(3, "1")}) {
    observed.job.spec.workers.template_ = {{"spec", {{"terminationGracePeriodSeconds", grace}}}};
    EXPECT_EQ(Environment(BuildWorkerPod(Pass(observed), 0, 0))["RINGMASTER_GRACE_SECONDS"],
              expected);
  }
}

TEST(WorkerPodTest, PassesTheTemplateOnWhole) {
  Observed observed = testing::Created(1);
  observed.job.spec.workers.template_ = Json::parse(R"({
      "metadata": {"labels": {"team": "vision"}},
      "spec": {"nodeSelector": {"gpu": "yes"}, "anything": {"new": 1.5},
               "containers": [{"name": "main", "image": "mine", "env": [{"name": "A", "value": "1"},
                               {"name": "RINGMASTER_JOB", "value": "another"}]},
                              {"name": "sidecar"}]}})");
  const Json pod = BuildWorkerPod(Pass(observed), 0, 0);
  EXPECT_EQ(pod["metadata"]["labels"]["team"], "vision");
  EXPECT_EQ(pod["spec"]["nodeSelector"]["gpu"], "yes");
  EXPECT_EQ(pod["spec"]["anything"]["new"], 1.5);
  EXPECT_EQ(pod["spec"]["containers"][0]["image"], "mine");
  EXPECT_EQ(pod["spec"]["containers"][1], Json({{"name", "sidecar"}}));
  EXPECT_EQ(Environment(pod)["A"], "1");
  EXPECT_EQ(Environment(pod)["RINGMASTER_JOB"], "digits") << "the contract's names win";
}

TEST(WorkerPodTest, MountsTheCheckpointVolume) {
  Observed observed = testing::Created(1);
  observed.job.spec.checkpoint.volume = Json::parse(R"({"hostPath": {"path": "/data"}})");
  const Json pod = BuildWorkerPod(Pass(observed), 0, 0);
  EXPECT_EQ(pod["spec"]["volumes"][0]["hostPath"]["path"], "/data");
  const Json config = Json::parse(Environment(pod)["RINGMASTER_TRAINER_CONFIG"]);
  EXPECT_EQ(config["checkpoint"]["directory"],
            pod["spec"]["containers"][0]["volumeMounts"][0]["mountPath"]);
  EXPECT_FALSE(config["checkpoint"].contains("volume"));
}

}  // namespace
}  // namespace ringmaster::reconcile
