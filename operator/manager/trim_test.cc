#include "operator/manager/trim.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/object.h"
#include "operator/reconcile/pod_facts.h"

namespace ringmaster::manager {
namespace {

using kube::Json;

constexpr char kManaged[] = R"([{"manager": "kubelet", "fieldsV1": {"f:status": {}}}])";

Json Pod() {
  return Json::parse(R"({"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "digits-3-1", "namespace": "team", "uid": "u3", "resourceVersion": "7",
      "deletionTimestamp": "2026-11-21T03:00:00Z",
      "labels": {"training.ringmaster.dev/job": "digits", "training.ringmaster.dev/index": "3",
                 "training.ringmaster.dev/incarnation": "1"},
      "annotations": {"training.ringmaster.dev/incidents": "2"},
      "ownerReferences": [{"kind": "TrainingJob", "uid": "j", "controller": true}]},
    "spec": {"nodeName": "node-7", "schedulingGroup": {"podGroupName": "g"}, "containers": [{"name": "worker", "command": ["train"]}]},
    "status": {"phase": "Failed", "reason": "Evicted", "message": "out of disk", "podIP": "10.0.0.3",
      "conditions": [{"type": "Ready", "status": "False", "reason": "PodFailed"},
                     {"type": "DisruptionTarget", "status": "True", "reason": "Drain", "message": "d"},
                     {"type": "PodScheduled", "status": "False", "message": "no node"}],
      "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 0}}}],
      "containerStatuses": [{"name": "worker", "imageID": "sha256:77", "state": {"terminated": {"exitCode": 137,
        "reason": "OOMKilled", "message": "m", "startedAt": "2026-11-21T02:00:00Z",
        "finishedAt": "2026-11-21T02:30:00Z"}}}]}})");
}

Json Job() {
  return Json::parse(R"({"apiVersion": "training.ringmaster.dev/v1alpha1", "kind": "TrainingJob",
    "metadata": {"name": "digits", "namespace": "team", "uid": "j", "resourceVersion": "9",
      "generation": 3, "annotations": {"team": "vision"}},
    "spec": {"workers": {"replicas": 2, "template": {"spec": {"containers": [
      {"name": "w", "command": ["train", "--rate", "0.5"]}]}}}},
    "status": {"round": 4, "goodput": 0.25, "incarnations": [{"index": 0, "incarnation": 2}],
      "conditions": [{"type": "Training", "status": "True", "reason": "RoundStarted",
                      "lastTransitionTime": "2026-11-21T02:00:00.25Z"}]}})");
}

Json WithBallast(Json object) {
  object["metadata"]["managedFields"] = Json::parse(kManaged);
  object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = "{}";
  return object;
}

TEST(TrimTest, APodTellsReconcileTheSameAsBefore) {
  const reconcile::PodFacts whole = reconcile::ReadPod(Pod(), "worker");
  const Json trimmed = TrimPod(WithBallast(Pod()));
  EXPECT_FALSE(trimmed["spec"].contains("containers"));
  EXPECT_FALSE(trimmed["metadata"].contains("managedFields"));
  EXPECT_FALSE(trimmed["status"]["containerStatuses"][0].contains("imageID"));
  EXPECT_EQ(trimmed["status"]["conditions"].size(), 2u) << trimmed["status"];
  const reconcile::PodFacts seen = reconcile::ReadPod(trimmed, "worker");
  EXPECT_EQ(seen, whole);
  EXPECT_EQ(seen.exit_reason, "OOMKilled");
  EXPECT_EQ(seen.incidents, 2);
  EXPECT_EQ(seen.group, "g");
}

TEST(TrimTest, APodKeepsWhatTheRendezvousAsksOf) {
  const Json trimmed = TrimPod(Pod());
  EXPECT_EQ(trimmed["metadata"], Pod()["metadata"]);
  EXPECT_EQ(kube::FindString(trimmed, {"status", "phase"}), "Failed");
}

TEST(TrimTest, AJobKeepsAllThatAUserOrTheOperatorWrote) {
  EXPECT_EQ(TrimJob(WithBallast(Job())), Job());
}

TEST(TrimTest, AServiceKeepsItsIdentity) {
  const Json service = Json::parse(
      R"({"metadata": {"name": "digits", "uid": "s"}, "spec": {"clusterIP": "None"}, "status": {}})");
  EXPECT_EQ(TrimService(service), Json::parse(R"({"metadata": {"name": "digits", "uid": "s"}})"));
}

TEST(TrimTest, OddObjectsDoNoHarm) {
  for (const char* text : {"{}", R"({"metadata": 1, "spec": [], "status": "x"})",
                           R"({"metadata": {"annotations": []}, "status": {}})"}) {
    for (const auto trim : {TrimJob, TrimPod, TrimService}) {
      EXPECT_EQ(trim(Json::parse(text)).is_object(), true);
    }
  }
}

}  // namespace
}  // namespace ringmaster::manager
