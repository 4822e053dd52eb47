#include "operator/reconcile/worker_pod.h"

#include <map>

#include <gtest/gtest.h>

#include "common/contract.h"
#include "operator/kube/object.h"
#include "operator/reconcile/testing.h"
#include "operator/reconcile/worker_setup.h"

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

// What it would say of them would change with the next field that the API gets.
TEST(WorkerPodTest, TellsTheTrainerNothingOfDefaultsAndAllThatDiffersFromThem) {
  Observed observed = testing::Created(1);
  observed.job.spec.checkpoint.keep = 9;
  const Json pod = BuildWorkerPod(Pass(observed), 0, 0);
  const Json config = Json::parse(Environment(pod)["RINGMASTER_TRAINER_CONFIG"]);
  EXPECT_EQ(config["checkpoint"], Json({{"directory", "checkpoints"}, {"keep", 9}}));
  EXPECT_FALSE(config["trainer"].contains("seed"));
  const auto read = v1::FromJson<v1::WorkerConfig>(config);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->trainer, *observed.job.spec.trainer);
  EXPECT_EQ(read->checkpoint.keep, 9);
}

TEST(WorkerPodTest, TellsTheLauncherOfATrainerOfTheUsersOwn) {
  Observed observed = testing::Created(1);
  EXPECT_FALSE(
      Environment(BuildWorkerPod(Pass(observed), 0, 0)).contains("RINGMASTER_TRAINER_BINARY"));
  observed.job.spec.trainer->program = "build/my-trainer";
  const Json pod = BuildWorkerPod(Pass(observed), 0, 0);
  EXPECT_EQ(Environment(pod)["RINGMASTER_TRAINER_BINARY"], "build/my-trainer");
  EXPECT_EQ(pod["spec"]["containers"][0]["command"], Json::array({"ringmaster-launcher"}));
}

TEST(WorkerPodTest, TellsTheLauncherHowThreadsAreBoundWhereTheJobAsksForIt) {
  Observed observed = testing::Created(1);
  const auto bind = [&] {
    const auto variables = Environment(BuildWorkerPod(Pass(observed), 0, 0));
    const auto found = variables.find("RINGMASTER_BIND");
    return found == variables.end() ? "" : found->second;
  };
  EXPECT_EQ(bind(), "");
  auto& trainer = *observed.job.spec.trainer;
  trainer.threads_per_worker = 4;
  trainer.cores = {.bind = training::v1alpha1::CoreBinding::kCores, .communication = 1};
  EXPECT_EQ(bind(), "4+1");
  trainer.cores->bind = training::v1alpha1::CoreBinding::kNone;
  EXPECT_EQ(bind(), "");
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

// "not-ready 30, unreachable 30": how long the pod stays on a node with these taints.
std::string StaysOnLostNodes(const Json& pod) {
  std::string text;
  for (const Json& toleration : pod["spec"]["tolerations"]) {
    if (!text.empty()) text += ", ";
    const std::string key = toleration.value("key", "every");
    text += key.substr(key.find('/') + 1);
    if (toleration.contains("tolerationSeconds"))
      text += " " + toleration["tolerationSeconds"].dump();
    EXPECT_EQ(toleration["operator"], "Exists");
  }
  return text;
}

TEST(WorkerPodTest, LeavesALostNodeSoonUnlessTheTemplateSaysWhen) {
  Observed observed = testing::Created(1);
  const auto stays = [&](const char* tolerations) {
    observed.job.spec.workers.template_ = {{"spec", {{"tolerations", Json::parse(tolerations)}}}};
    return StaysOnLostNodes(BuildWorkerPod(Pass(observed), 0, 0));
  };
  EXPECT_EQ(StaysOnLostNodes(BuildWorkerPod(Pass(observed), 0, 0)), "not-ready 30, unreachable 30");
  EXPECT_EQ(stays(R"([{"key": "gpu", "operator": "Exists"}])"),
            "gpu, not-ready 30, unreachable 30");
  EXPECT_EQ(stays(R"([{"key": "node.kubernetes.io/unreachable", "operator": "Exists",
                       "effect": "NoExecute", "tolerationSeconds": 900}])"),
            "unreachable 900, not-ready 30");
  EXPECT_EQ(stays(R"([{"key": "node.kubernetes.io/unreachable", "operator": "Exists",
                       "effect": "NoSchedule"}])"),
            "unreachable, not-ready 30, unreachable 30")
      << "it says where the pod may be put, not how long it stays";
  EXPECT_EQ(stays(R"([{"operator": "Exists"}])"), "every") << "it stays for ever";
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

// As the operator sets it on a cluster.
Settings OnACluster() {
  Settings settings;
  settings.rendezvous = "ringmaster.system.svc:7471";
  settings.rendezvous_ca = "PEM";
  settings.worker_tokens = true;
  settings.restricted_pods = true;
  settings.checkpoint_directory = "";
  return settings;
}

Json VolumeOf(const Json& pod, const std::string& name) {
  for (const Json& volume : pod["spec"]["volumes"]) {
    if (volume["name"] == name) return volume;
  }
  return nullptr;
}

std::string MountPathOf(const Json& container, const std::string& name) {
  for (const Json& mount : container["volumeMounts"]) {
    if (mount["name"] == name) return mount["mountPath"];
  }
  return "";
}

TEST(WorkerPodTest, GivesAWorkerAClustersTokenAndNoOther) {
  Observed observed = testing::Created(1);
  observed.settings = OnACluster();
  const Json pod = BuildWorkerPod(Pass(observed), 0, 0);
  EXPECT_EQ(pod["spec"]["automountServiceAccountToken"], false);
  const Json token = VolumeOf(pod, kTokenVolume)["projected"]["sources"][0]["serviceAccountToken"];
  EXPECT_EQ(token["audience"], contract::kTokenAudience);
  const auto environment = Environment(pod);
  EXPECT_EQ(environment.at(contract::kEnvTokenFile),
            MountPathOf(pod["spec"]["containers"][0], kTokenVolume) + "/" +
                token["path"].get<std::string>());
  EXPECT_EQ(environment.at(contract::kEnvRendezvousCa), "PEM");
}

TEST(WorkerPodTest, GivesALaptopsWorkerNeitherTokenNorAuthority) {
  const Observed observed = testing::Created(1);
  const Json pod = BuildWorkerPod(Pass(observed), 0, 0);
  EXPECT_FALSE(pod["spec"].contains("volumes"));
  EXPECT_FALSE(pod["spec"].contains("automountServiceAccountToken"));
  EXPECT_FALSE(Environment(pod).contains(contract::kEnvRendezvousCa));
}

TEST(WorkerPodTest, RestrictsAPodWithoutATemplateAndKeepsTheTemplatesOwnSecurity) {
  Observed observed = testing::Created(1);
  observed.settings = OnACluster();
  Json pod = BuildWorkerPod(Pass(observed), 0, 0);
  const Json security = pod["spec"]["containers"][0]["securityContext"];
  EXPECT_EQ(security["allowPrivilegeEscalation"], false);
  EXPECT_EQ(security["capabilities"]["drop"], Json::array({"ALL"}));
  EXPECT_EQ(pod["spec"]["securityContext"]["runAsNonRoot"], true);
  EXPECT_EQ(MountPathOf(pod["spec"]["containers"][0], kTemporaryVolume), "/tmp");

  observed.job.spec.workers.template_ = Json::parse(R"({"spec": {
      "automountServiceAccountToken": true, "securityContext": {"runAsUser": 7},
      "containers": [{"name": "main", "image": "mine"}]}})");
  pod = BuildWorkerPod(Pass(observed), 0, 0);
  EXPECT_EQ(pod["spec"]["securityContext"], Json({{"runAsUser", 7}}));
  EXPECT_FALSE(pod["spec"]["containers"][0].contains("securityContext"));
  EXPECT_EQ(pod["spec"]["automountServiceAccountToken"], true);
}

TEST(WorkerPodTest, KeepsCheckpointsInThePodWhereTheManifestNamesNoPlace) {
  Observed observed = testing::Created(1);
  observed.settings = OnACluster();
  const Json pod = BuildWorkerPod(Pass(observed), 0, 0);
  EXPECT_TRUE(VolumeOf(pod, kCheckpointVolume).contains("emptyDir"));
  const Json config = Json::parse(Environment(pod)["RINGMASTER_TRAINER_CONFIG"]);
  EXPECT_EQ(config["checkpoint"]["directory"], kCheckpointMount);
}

TEST(WorkerPodTest, BringsTheLauncherIntoAForeignImage) {
  Observed observed = testing::Created(1);
  observed.settings = OnACluster();
  observed.settings.launcher_image = "registry/launcher:1";
  observed.job.spec.trainer.reset();
  observed.job.spec.workers.template_ = Json::parse(R"({"spec": {
      "initContainers": [{"name": "first", "image": "a"}],
      "containers": [{"name": "main", "image": "pytorch", "command": ["python"], "args": ["x"]}]}})");
  const Json pod = BuildWorkerPod(Pass(observed), 0, 0);
  ASSERT_EQ(pod["spec"]["initContainers"].size(), 2u) << "the template's own stays";
  const Json& installer = pod["spec"]["initContainers"][1];
  EXPECT_EQ(installer["image"], "registry/launcher:1");
  const Json& worker = pod["spec"]["containers"][0];
  const std::string folder = MountPathOf(worker, kLauncherVolume);
  EXPECT_EQ(MountPathOf(installer, kLauncherVolume), folder);
  EXPECT_EQ(installer["command"].back(), folder);
  EXPECT_EQ(worker["command"], Json::array({folder + "/ld.so", "--library-path", folder,
                                            folder + "/ringmaster-launcher", "--", "python", "x"}));
  EXPECT_EQ(worker["image"], "pytorch");
}

}  // namespace
}  // namespace ringmaster::reconcile
