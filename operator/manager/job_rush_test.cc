// What a rush of jobs changes: pods come before statuses.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/object.h"
#include "operator/kube/testing/fault_client.h"
#include "operator/manager/manager.h"
#include "operator/manager/testing/job_reconciler_fixture.h"

namespace ringmaster::manager {
namespace {

using kube::testing::Verb;
using testing::JobReconcilerTest;
using testing::kHello;

// Two jobs at once, of a manager that lets statuses wait.
class RushOfJobsTest : public JobReconcilerTest {
 protected:
  void CreateJob(const kube::ObjectKey& key) {
    kube::Json job = kube::NewObject(kube::kTrainingJob, key);
    job["spec"] = kube::Json::parse(
        R"({"workers": {"replicas": 2, "template": {"spec": {"containers": [{"name": "w", "command": ["true"]}]}}}})");
    ASSERT_TRUE(store_->Create(kube::kTrainingJob, job).ok());
  }
  void CreateTwo() {
    CreateJob(kHello);
    CreateJob(kSecond);
    client_.SetObserver([this](const kube::testing::Call& call) {
      if (call.verb == Verb::kPatchStatus) told_.push_back(call.key);
    });
  }
  void Evict(const kube::ObjectKey& pod) {
    const kube::Json failed = {{"phase", "Failed"}, {"reason", "Evicted"}};
    const std::string version = kube::ResourceVersion(*store_->Get(kube::kPod, pod));
    ASSERT_TRUE(store_->PatchStatus(kube::kPod, pod, failed, version).ok());
  }
  void RunPaced() { ASSERT_TRUE(paced_.RunUntilIdle().ok()); }
  // The job whose status follows its pods; which it is, the queue decides.
  kube::ObjectKey Later() { return told_.at(0) == kHello ? kSecond : kHello; }
  kube::Json StatusOf(const kube::ObjectKey& key) {
    return store_->Get(kube::kTrainingJob, key)->value("status", kube::Json());
  }
  ManagerOptions Paced() const { return {.status_interval = std::chrono::seconds(1)}; }

  const kube::ObjectKey kSecond{"default", "second"};
  std::vector<kube::ObjectKey> told_;  // whose status was written
  Manager paced_{Paced(), client_, forgotten_, clock_};
};

TEST_F(RushOfJobsTest, PodsOfALaterJobComeBeforeItsFirstStatus) {
  CreateTwo();
  RunPaced();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(Pods(), 4u);
  EXPECT_EQ(StatusOf(Later()), kube::Json());
  const std::string began = FormatTime(clock_.Now());
  clock_.Advance(std::chrono::seconds(2));
  RunPaced();
  EXPECT_EQ(std::count(told_.begin(), told_.end(), Later()), 1);
  EXPECT_EQ(StatusOf(Later())["startTime"], began) << "when it was decided, not when it was told";
  EXPECT_EQ(StatusOf(Later())["workers"]["active"], 2);
}

TEST_F(RushOfJobsTest, AFirstStatusThatFailedIsTriedAgain) {
  CreateTwo();
  RunPaced();
  const kube::ObjectKey later = Later();
  const std::string began = FormatTime(clock_.Now());
  client_.FailNext({.verb = Verb::kPatchStatus}, absl::UnavailableError("not now"), 0, 2);
  clock_.Advance(std::chrono::seconds(2));
  RunPaced();
  EXPECT_EQ(StatusOf(later), kube::Json());
  clock_.Advance(std::chrono::seconds(2));
  RunPaced();
  EXPECT_EQ(StatusOf(later)["workers"]["active"], 2);
  EXPECT_EQ(StatusOf(later)["startTime"], began);
}

TEST_F(RushOfJobsTest, WhoComesNextAdoptsPodsWithoutAStatus) {
  CreateTwo();
  RunPaced();
  Manager next(Paced(), client_, forgotten_, clock_);
  ASSERT_TRUE(next.RunUntilIdle().ok());
  EXPECT_EQ(Pods(), 4u);
  EXPECT_EQ(StatusOf(Later())["incarnations"].size(), 2u);
}

TEST_F(RushOfJobsTest, ANewJobsOwnRetryIsNoRush) {
  client_.FailNext({.verb = Verb::kPatchStatus}, absl::AbortedError("a conflict"));
  CreateTwo();
  ASSERT_TRUE(store_->Delete(kube::kTrainingJob, kSecond, {}).ok());
  int pods_before = -1;
  client_.SetObserver([&](const kube::testing::Call& call) {
    if (call.verb == Verb::kPatchStatus && call.status.ok() && pods_before < 0)
      pods_before = static_cast<int>(Pods());
  });
  RunPaced();
  clock_.Advance(std::chrono::milliseconds(100));
  RunPaced();
  EXPECT_EQ(pods_before, 0) << "the status comes first";
  EXPECT_EQ(Pods(), 2u);
}

TEST_F(RushOfJobsTest, ALossBeforeTheFirstStatusIsTold) {
  CreateTwo();
  RunPaced();
  const kube::ObjectKey later = Later();
  Evict({"default", later.name + "-0-0"});
  RunPaced();
  EXPECT_EQ(StatusOf(later)["incarnations"][0]["incarnation"], 1) << StatusOf(later).dump(1);
}

TEST_F(RushOfJobsTest, WhoComesNextStoresALossBeforeItIsMended) {
  CreateTwo();
  RunPaced();
  const kube::ObjectKey later = Later();
  Evict({"default", later.name + "-0-0"});
  CreateJob({"default", "another"});  // whose pods make a rush
  kube::Json told;
  client_.SetObserver([&](const kube::testing::Call& call) {
    const kube::ObjectKey successor{"default", later.name + "-0-1"};
    if (call.verb == Verb::kCreate && store_->Get(kube::kPod, successor).ok() && told.is_null())
      told = StatusOf(later);
  });
  Manager next(Paced(), client_, forgotten_, clock_);
  ASSERT_TRUE(next.RunUntilIdle().ok());
  ASSERT_FALSE(told.is_null());
  EXPECT_EQ(told["restarts"]["total"], 1) << told.dump(1);
}

}  // namespace
}  // namespace ringmaster::manager
