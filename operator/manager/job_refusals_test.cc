// What becomes of a job whose pods or statuses are refused.
#include <chrono>
#include <future>
#include <mutex>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"
#include "operator/kube/testing/fault_client.h"
#include "operator/manager/manager.h"
#include "operator/manager/testing/job_reconciler_fixture.h"

namespace ringmaster::manager {
namespace {

using kube::testing::Verb;
using testing::ForgottenJobs;
using ::testing::HasSubstr;
using testing::JobReconcilerTest;
using testing::kHello;

TEST_F(JobReconcilerTest, SaysWhyAPodIsForbiddenUntilItIsTaken) {
  RefusePods("exceeded quota: pods", 3);
  Create();
  Run();
  EXPECT_EQ(PodsReady()["reason"], "Forbidden");
  EXPECT_THAT(Told(), HasSubstr("exceeded quota: pods"));
  for (int minute = 0; minute < 4; ++minute) {
    clock_.Advance(std::chrono::minutes(1));
    Run();
  }
  EXPECT_EQ(client_.Pending(), 0);
  EXPECT_EQ(Pods(), 1u);
  EXPECT_EQ(PodsReady()["reason"], "PodsStarting");
}

TEST_F(JobReconcilerTest, EndsNoJobWhoseStatusIsRefused) {
  client_.FailNext({.verb = Verb::kPatchStatus}, absl::InvalidArgumentError("denied by policy"));
  Create();
  Run();
  EXPECT_EQ(State(), "");
  EXPECT_EQ(Pods(), 0u);
  EXPECT_EQ(Events("StatusRefused"), 1);
  clock_.Advance(std::chrono::minutes(1));
  Run();
  EXPECT_EQ(State(), "Pending");
  EXPECT_EQ(Pods(), 1u);
}

TEST_F(JobReconcilerTest, BacksOffFromAStatusThatIsRefusedWhateverBringsAPass) {
  for (int i = 1; i <= 100; ++i) {
    client_.FailNext({.verb = Verb::kPatchStatus},
                     absl::PermissionDeniedError("request " + std::to_string(i)));
  }
  Create();
  Count();
  for (int pass = 0; pass < 20; ++pass) {
    Touch(pass);
    Run();
  }
  EXPECT_EQ(status_writes_, 1);
  EXPECT_EQ(Events("StatusRefused"), 1);
  clock_.Advance(std::chrono::seconds(1));
  Run();
  EXPECT_EQ(status_writes_, 2) << "it is tried again";
  client_.ClearFaults();
  clock_.Advance(std::chrono::seconds(2));
  Run();
  EXPECT_EQ(State(), "Pending");
  EXPECT_EQ(Pods(), 1u);
}

TEST_F(JobReconcilerTest, APodThatAdmissionDeniesIsNoFaultOfTheTemplate) {
  client_.FailNext({.verb = Verb::kCreate, .type = "pods"},
                   absl::InvalidArgumentError("admission webhook \"a.example\" denied the request: "
                                              "not today"),
                   0, 3);
  Create();
  Run();
  EXPECT_EQ(PodsReady()["reason"], "Forbidden");
  EXPECT_THAT(Told(), HasSubstr("not today"));
  for (int minute = 0; minute < 4; ++minute) {
    clock_.Advance(std::chrono::minutes(1));
    Run();
  }
  EXPECT_EQ(Pods(), 1u);
  EXPECT_EQ(PodsReady()["reason"], "PodsStarting");
}

TEST_F(JobReconcilerTest, EndsNoJobForADeletionThatIsRefusedAsMalformed) {
  Create();
  Run();
  ASSERT_EQ(Pods(), 1u);
  client_.FailNext({.verb = Verb::kDelete, .type = "pods"},
                   kube::BadRequest("no such precondition"));
  const kube::Json suspend = {{"spec", {{"suspend", true}}}};
  ASSERT_TRUE(store_->Patch(kube::kTrainingJob, kHello, suspend).ok());
  Run();
  EXPECT_EQ(client_.Pending(), 0);
  EXPECT_EQ(State(), "Suspended");
  clock_.Advance(std::chrono::minutes(1));
  Run();
  EXPECT_EQ(State(), "Suspended");
  EXPECT_EQ(Pods(), 0u);
}

TEST_F(JobReconcilerTest, BacksOffFromARefusalWhoseWordsDifferEachTime) {
  constexpr int kRequests = 200;
  for (int i = 1; i <= kRequests; ++i) RefusePods("request " + std::to_string(i), 1);
  Create();
  Count();
  Run();
  clock_.Advance(std::chrono::milliseconds(10));
  Run();
  EXPECT_THAT(Told(), HasSubstr("request 1"));
  EXPECT_LE(tries_, 4) << "time stands still, but for the first retry";
  for (int time = 0; time < 10; ++time) {
    const std::string before = Told();
    Count();
    clock_.Advance(std::chrono::minutes(1));
    Run();
    clock_.Advance(std::chrono::minutes(1));
    Run();
    EXPECT_LE(tries_, 3) << "two retries, and one when the status has changed";
    EXPECT_LE(status_writes_, 1);
    EXPECT_NE(Told(), before) << "what it is refused with now is told in the end";
  }
  EXPECT_EQ(Events("Forbidden"), 1);
  EXPECT_GT(client_.Pending(), 0) << "it was never taken";
}

TEST_F(JobReconcilerTest, BacksOffFromAPodThatIsRefusedWhateverBringsAPass) {
  RefusePods("exceeded quota: pods", 1000);
  Create();
  Run();
  clock_.Advance(std::chrono::milliseconds(10));
  Count();
  for (int pass = 0; pass < 20; ++pass) {
    Touch(pass);
    Run();
  }
  EXPECT_EQ(tries_, 0);
  EXPECT_EQ(PodsReady()["reason"], "Forbidden") << "it is not over because nothing was tried";
  clock_.Advance(std::chrono::seconds(1));
  Run();
  EXPECT_EQ(tries_, 1);
  client_.ClearFaults();
  Run();
  EXPECT_EQ(Pods(), 0u) << "it waits twice as long now";
  clock_.Advance(std::chrono::seconds(2));
  Run();
  EXPECT_EQ(Pods(), 1u);
  clock_.Advance(std::chrono::milliseconds(10));
  Run();
  EXPECT_EQ(PodsReady()["reason"], "PodsStarting");
}

TEST_F(JobReconcilerTest, TellsNoRefusalAnewAfterARestart) {
  RefusePods("exceeded quota: pods", 1000);
  Create();
  Run();
  clock_.Advance(std::chrono::milliseconds(10));
  Run();
  const kube::Json told = PodsReady();
  ASSERT_EQ(told["reason"], "Forbidden");
  Count();
  Manager next(options_, client_, forgotten_, clock_);
  for (int minute = 0; minute < 3; ++minute) {
    ASSERT_TRUE(next.RunUntilIdle().ok());
    clock_.Advance(std::chrono::minutes(1));
  }
  EXPECT_GE(tries_, 3);
  EXPECT_EQ(status_writes_, 0);
  EXPECT_EQ(Events("Forbidden"), 1);
  EXPECT_EQ(PodsReady(), told);
}

TEST_F(JobReconcilerTest, ARefusalThatIsOverAfterARestartIsNotToldAnyMore) {
  RefusePods("exceeded quota: pods", 1000);
  Create();
  Run();
  clock_.Advance(std::chrono::milliseconds(10));
  Run();
  ASSERT_EQ(PodsReady()["reason"], "Forbidden");
  client_.ClearFaults();
  Manager next(options_, client_, forgotten_, clock_);
  ASSERT_TRUE(next.RunUntilIdle().ok());
  clock_.Advance(std::chrono::milliseconds(10));
  ASSERT_TRUE(next.RunUntilIdle().ok());
  EXPECT_EQ(Pods(), 1u);
  EXPECT_EQ(PodsReady()["reason"], "PodsStarting");
}

// While the operator hears that the template's pod is invalid, the user mends the template.
TEST(MendedJobTest, IsNotEndedForTheTemplateBefore) {
  constexpr std::chrono::seconds kPatience(60);
  const auto store = kube::memory::MemoryStore::Open({}).value();
  kube::testing::FaultClient client(*store);
  std::promise<void> mend_seen;
  std::promise<void> pod_made;
  std::once_flag mended;
  std::once_flag made;
  client.FailNext({.verb = Verb::kCreate, .type = "pods"},
                  absl::InvalidArgumentError("spec.containers[0].command: not today"));
  client.SetObserver([&](const kube::testing::Call& call) {
    if (call.verb != Verb::kCreate || call.type != "pods") return;
    if (call.status.ok()) return std::call_once(made, [&] { pod_made.set_value(); });
    const kube::Json container = {{"name", "w"}, {"command", {"false"}}};
    const kube::Json containers = {{"spec", {{"containers", {container}}}}};
    const kube::Json patch = {{"spec", {{"workers", {{"template", containers}}}}}};
    ASSERT_TRUE(store->Patch(kube::kTrainingJob, kHello, patch).ok());
    ASSERT_EQ(mend_seen.get_future().wait_for(kPatience), std::future_status::ready);
  });
  ForgottenJobs link;
  const ManagerOptions options{.on_job = [&](const kube::ObjectPtr&, const kube::ObjectPtr& job) {
    if (job != nullptr && kube::Generation(*job) == 2)
      std::call_once(mended, [&] { mend_seen.set_value(); });
  }};
  Manager manager(options, client, link, SystemClock());
  ASSERT_TRUE(manager.Start().ok());
  kube::Json job = kube::NewObject(kube::kTrainingJob, kHello);
  job["spec"] = kube::Json::parse(
      R"({"workers": {"replicas": 1, "template": {"spec": {"containers": [{"name": "w", "command": ["true"]}]}}}})");
  ASSERT_TRUE(store->Create(kube::kTrainingJob, job).ok());
  EXPECT_EQ(pod_made.get_future().wait_for(kPatience), std::future_status::ready);
  manager.Stop();
  EXPECT_EQ(client.Pending(), 0);
  const kube::Json ended = *store->Get(kube::kTrainingJob, kHello);
  EXPECT_NE(kube::FindString(ended, {"status", "state"}), "Failed") << ended["status"].dump(1);
}

}  // namespace
}  // namespace ringmaster::manager
