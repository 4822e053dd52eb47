#include "operator/node/agent.h"

#include <chrono>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/temporary_folder.h"
#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"

namespace ringmaster::node {
namespace {

using kube::Json;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr auto kDeadline = 60s;

// A node agent over a store of its own. Pods are shell scripts.
class NodeAgentTest : public ::testing::Test {
 protected:
  void SetUp() override { StartAgent(std::nullopt); }

  void StartAgent(std::optional<Resources> capacity) {
    agent_.reset();
    NodeAgent::Options options;
    options.bin_directory = "/opt/bin";
    options.workspace = "/";
    options.run_directory = directory_;
    options.environment = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}};
    options.capacity = capacity;
    options.cores = {{.cpus = {0, 2}, .domain = 0}, {.cpus = {1, 3}, .domain = 1}};
    auto agent = NodeAgent::Create(options, store_, SystemClock());
    ASSERT_TRUE(agent.ok()) << agent.status();
    agent_ = *std::move(agent);
    const absl::Status started = agent_->Start();
    ASSERT_TRUE(started.ok()) << started;
  }

  void CreatePod(const std::string& name, const std::string& script,
                 const Json& extra = Json::object()) {
    Json pod = kube::NewObject(kube::kPod, {"default", name});
    pod["spec"] = {
        {"restartPolicy", "Never"},
        {"containers",
         Json::array(
             {{{"name", "worker"}, {"image", "none"}, {"command", {"sh", "-c", script}}}})}};
    kube::MergePatch(pod["spec"], extra);
    const auto created = store_.Create(kube::kPod, pod);
    ASSERT_TRUE(created.ok()) << created.status();
  }

  // The pod once `accept` holds for it; null after the deadline. A pod that is gone is an empty
  // object.
  template <typename Accept>
  Json WaitFor(const std::string& name, Accept accept) {
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    auto list = store_.List(kube::kPod, "default", {});
    auto watch = store_.Watch(kube::kPod, "default", {.resource_version = list->resource_version});
    while (std::chrono::steady_clock::now() < deadline) {
      const auto pod = store_.Get(kube::kPod, {"default", name});
      const Json current = pod.ok() ? *pod : Json::object();
      if (accept(current)) return current;
      (void)(*watch)->Next(1000ms);
    }
    ADD_FAILURE() << "pod " << name << " did not come to the expected state";
    return nullptr;
  }
  Json WaitForPhase(const std::string& name, const std::string& phase) {
    return WaitFor(name, [&](const Json& pod) {
      return kube::FindString(pod, {"status", "phase"}) == phase;
    });
  }
  static Json Container(const Json& pod) { return pod["status"]["containerStatuses"][0]; }

  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
  const std::string directory_ = folder_.path();

  std::unique_ptr<kube::memory::MemoryStore> owned_store_ =
      kube::memory::MemoryStore::Open({}).value();
  kube::memory::MemoryStore& store_ = *owned_store_;
  std::unique_ptr<NodeAgent> agent_;
};

TEST_F(NodeAgentTest, PodThatExitsWithZeroHasSucceeded) {
  CreatePod("w-0", "echo hello");
  const Json pod = WaitForPhase("w-0", "Succeeded");
  EXPECT_EQ(Container(pod)["state"]["terminated"]["exitCode"], 0);
  EXPECT_EQ(Container(pod)["state"]["terminated"]["reason"], "Completed");
  EXPECT_EQ(pod["spec"]["nodeName"], "local");
  EXPECT_EQ(ReadFile(directory_ + "/logs/w-0.log").value(), "hello\n");
}

TEST_F(NodeAgentTest, PodThatFailsReportsItsCodeAndItsLastLines) {
  CreatePod("w-0", "echo the reason >&2; exit 65");
  const Json pod = WaitForPhase("w-0", "Failed");
  EXPECT_EQ(Container(pod)["state"]["terminated"]["exitCode"], 65);
  EXPECT_EQ(Container(pod)["state"]["terminated"]["message"], "the reason");
}

TEST_F(NodeAgentTest, PodThatFailsAfterALongLogReportsTheLastLinesOnly) {
  CreatePod("w-0", "seq 1 50000; exit 1");
  const Json pod = WaitForPhase("w-0", "Failed");
  EXPECT_EQ(Container(pod)["state"]["terminated"]["message"],
            "49991\n49992\n49993\n49994\n49995\n49996\n49997\n49998\n49999\n50000");
}

TEST_F(NodeAgentTest, PodsHaveAddressesOfTheirOwn) {
  CreatePod("w-0", "tail -f /dev/null");
  CreatePod("w-1", "tail -f /dev/null");
  const Json first = WaitForPhase("w-0", "Running");
  const Json second = WaitForPhase("w-1", "Running");
  EXPECT_THAT(first["status"]["podIP"].get<std::string>(), HasSubstr("127."));
  EXPECT_NE(first["status"]["podIP"], second["status"]["podIP"]);
}

// A container that is told of its cores, says so and stays until it is told to go.
Json SaysItsCores() {
  return {
      {"containers",
       Json::array({{{"name", "worker"},
                     {"image", "none"},
                     {"command", {"sh", "-c", "echo $RINGMASTER_CORES; exec tail -f /dev/null"}},
                     {"env", Json::array({{{"name", "RINGMASTER_BIND"}, {"value", "1+0"}}})}}})}};
}

TEST_F(NodeAgentTest, PodsWhoseThreadsAreBoundHaveCoresOfTheirOwnUntilTheyAreGone) {
  const auto told = [&](const std::string& name) {
    CreatePod(name, "", SaysItsCores());
    WaitForPhase(name, "Running");
    std::string text;
    WaitFor(name, [&](const Json&) {
      text = ReadFile(directory_ + "/logs/" + name + ".log").value_or("");
      return text.ends_with('\n');
    });
    return text;
  };
  EXPECT_EQ(told("w-0"), "0,2\n");
  EXPECT_EQ(told("w-1"), "1,3\n");
  EXPECT_EQ(told("w-2"), "none\n");
  ASSERT_TRUE(store_.Delete(kube::kPod, {"default", "w-1"}, {}).ok());
  WaitFor("w-1", [](const Json& pod) { return pod.empty(); });
  EXPECT_EQ(told("w-3"), "1,3\n");
}

TEST_F(NodeAgentTest, CommandThatCannotBeRunFailsWithItsName) {
  CreatePod(
      "w-0", "",
      {{"containers", Json::array({{{"name", "worker"}, {"command", {"no-such-program"}}}})}});
  const Json pod = WaitForPhase("w-0", "Failed");
  EXPECT_EQ(Container(pod)["state"]["terminated"]["exitCode"], 127);
  EXPECT_THAT(Container(pod)["state"]["terminated"]["message"].get<std::string>(),
              HasSubstr("no-such-program"));
}

TEST_F(NodeAgentTest, FieldThatIsNotSupportedFailsThePodByName) {
  CreatePod("w-0", "true", {{"initContainers", Json::array()}});
  EXPECT_THAT(WaitForPhase("w-0", "Failed")["status"]["message"].get<std::string>(),
              HasSubstr("spec.initContainers"));
}

TEST_F(NodeAgentTest, DeletedPodGetsTermAndGoesWhenItHasEnded) {
  CreatePod("w-0", "trap 'echo bye; exit 0' TERM; echo ready; while :; do :; done");
  WaitForPhase("w-0", "Running");
  WaitFor("w-0", [&](const Json&) {
    return ReadFile(directory_ + "/logs/w-0.log").value_or("") == "ready\n";
  });
  ASSERT_TRUE(store_.Delete(kube::kPod, {"default", "w-0"}, {}).ok());
  WaitFor("w-0", [](const Json& pod) { return pod.empty(); });
  EXPECT_EQ(ReadFile(directory_ + "/logs/w-0.log").value(), "ready\nbye\n");
}

TEST_F(NodeAgentTest, PodThatIgnoresTermIsKilledAfterItsGracePeriod) {
  CreatePod("w-0", "trap '' TERM; echo ready; while :; do :; done",
            {{"terminationGracePeriodSeconds", 1}});
  WaitForPhase("w-0", "Running");
  ASSERT_TRUE(store_.Delete(kube::kPod, {"default", "w-0"}, {}).ok());
  WaitFor("w-0", [](const Json& pod) { return pod.empty(); });
}

TEST_F(NodeAgentTest, FailedContainerIsStartedAgainWhereThePolicySaysSo) {
  CreatePod("w-0",
            "test -e " + directory_ + "/marker && exit 0; touch " + directory_ + "/marker; exit 1",
            {{"restartPolicy", "OnFailure"}});
  const Json pod = WaitForPhase("w-0", "Succeeded");
  EXPECT_EQ(Container(pod)["restartCount"], 1);
}

TEST_F(NodeAgentTest, PodWaitsUntilTheMachineHasRoomForItsRequests) {
  StartAgent(Resources{1, 1e9});
  const Json wants_all = {
      {"containers",
       Json::array({{{"name", "worker"},
                     {"command", {"sh", "-c", "while ! test -e " + directory_ + "/go; do :; done"}},
                     {"resources", {{"requests", {{"cpu", "1"}}}}}}})}};
  CreatePod("w-0", "", wants_all);
  WaitForPhase("w-0", "Running");
  CreatePod("w-1", "", wants_all);
  const Json waiting = WaitFor("w-1", [](const Json& pod) {
    return kube::Find(pod, {"status", "conditions"}) != nullptr;
  });
  EXPECT_EQ(waiting["status"]["conditions"][0]["reason"], "Unschedulable");
  ASSERT_TRUE(WriteFileAtomically(directory_ + "/go", "").ok());
  WaitForPhase("w-0", "Succeeded");
  WaitForPhase("w-1", "Succeeded");
}

TEST_F(NodeAgentTest, PodOfAnEarlierRunIsLostWithItsNode) {
  CreatePod("w-0", "while :; do :; done");
  WaitForPhase("w-0", "Running");
  StartAgent(std::nullopt);
  EXPECT_EQ(WaitForPhase("w-0", "Failed")["status"]["reason"], "NodeLost");
}

TEST_F(NodeAgentTest, PodThatIsRemovedByForceIsKilled) {
  CreatePod("w-0", "trap '' TERM; echo $$$$; while :; do :; done");
  WaitForPhase("w-0", "Running");
  WaitFor("w-0", [&](const Json&) {
    return ReadFile(directory_ + "/logs/w-0.log").value_or("").ends_with("\n");
  });
  const pid_t pid = std::stoi(ReadFile(directory_ + "/logs/w-0.log").value());
  ASSERT_TRUE(store_.Delete(kube::kPod, {"default", "w-0"}, {.grace_period = 0s}).ok());
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (::kill(pid, 0) == 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_NE(::kill(pid, 0), 0);
}

}  // namespace
}  // namespace ringmaster::node
