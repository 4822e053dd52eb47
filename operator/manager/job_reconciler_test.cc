#include "operator/manager/job_reconciler.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"
#include "operator/kube/testing/fault_client.h"
#include "operator/manager/manager.h"

namespace ringmaster::manager {
namespace {

using kube::testing::Verb;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const kube::ObjectKey kHello{"default", "hello"};

class ForgottenJobs : public WorkerLink {
 public:
  reconcile::WorkersView SnapshotFor(const kube::ObjectKey&) override { return {}; }
  void Announce(const kube::ObjectKey&, const reconcile::Announcement&) override {}
  void Send(const kube::ObjectKey&, const std::string&, const reconcile::WorkerCommand&) override {}
  void LetGo(const kube::ObjectKey&, const std::string&) override {}
  void Forget(const kube::ObjectKey& job) override { names.push_back(job.name); }

  std::vector<std::string> names;
};

class JobReconcilerTest : public ::testing::Test {
 protected:
  void Create(const char* unknown_field = nullptr, const char* managed_by = nullptr) {
    kube::Json job = kube::NewObject(kube::kTrainingJob, kHello);
    job["spec"] = kube::Json::parse(
        R"({"workers": {"replicas": 1, "template": {"spec": {"containers": [{"name": "w", "command": ["true"]}]}}}})");
    if (unknown_field != nullptr) job["spec"][unknown_field] = "yes";
    if (managed_by != nullptr) job["spec"]["managedBy"] = managed_by;
    ASSERT_TRUE(store_->Create(kube::kTrainingJob, job).ok());
  }
  // A change that asks for nothing, but brings a pass.
  void Touch(int number) {
    const kube::Json patch = {
        {"metadata", {{"annotations", {{"touched", std::to_string(number)}}}}}};
    ASSERT_TRUE(store_->Patch(kube::kTrainingJob, kHello, patch).ok());
  }
  void Delete() { ASSERT_TRUE(store_->Delete(kube::kTrainingJob, kHello, {}).ok()); }
  void Run() { ASSERT_TRUE(manager_.RunUntilIdle().ok()); }
  std::string State() {
    return kube::FindString(*store_->Get(kube::kTrainingJob, kHello), {"status", "state"});
  }
  std::size_t Pods() { return store_->List(kube::kPod, "default", {})->items.size(); }
  kube::Json PodsReady() {
    const kube::Json job = *store_->Get(kube::kTrainingJob, kHello);
    for (const kube::Json& condition : job["status"]["conditions"]) {
      if (condition["type"] == "PodsReady") return condition;
    }
    return {};
  }
  std::string Told() { return PodsReady()["message"]; }
  // How often an event with this reason was recorded.
  int Events(const std::string& reason) {
    int count = 0;
    const kube::ObjectList events = store_->List(kube::kEvent, "default", {}).value();
    for (const kube::ObjectPtr& event : events.items) {
      if (kube::FindString(*event, {"reason"}) == reason)
        count += kube::FindInt(*event, {"count"}).value_or(1);
    }
    return count;
  }
  // Counts tries to make a pod, and writes of the status, that begin now.
  void Count() {
    tries_ = 0;
    status_writes_ = 0;
    client_.SetObserver([this](const kube::testing::Call& call) {
      tries_ += call.verb == Verb::kCreate && call.type == "pods";
      status_writes_ += call.verb == Verb::kPatchStatus;
    });
  }
  void RefusePods(const std::string& words, int times) {
    client_.FailNext({.verb = Verb::kCreate, .type = "pods"}, absl::PermissionDeniedError(words), 0,
                     times);
  }

  FakeClock clock_;
  std::unique_ptr<kube::memory::MemoryStore> store_ =
      kube::memory::MemoryStore::Open({.clock = &clock_}).value();
  kube::testing::FaultClient client_{*store_};
  ForgottenJobs forgotten_;
  absl::Status confirmed_;
  int confirmations_ = 0;
  std::atomic<int> tries_ = 0;  // counted by the threads that write, as is the next
  std::atomic<int> status_writes_ = 0;
  const ManagerOptions options_{.confirm = [this] {
    ++confirmations_;
    return confirmed_;
  }};
  Manager manager_{options_, client_, forgotten_, clock_};
};

TEST_F(JobReconcilerTest, ForgetsTheWorkersOfAJobThatIsGone) {
  Create();
  Run();
  EXPECT_THAT(forgotten_.names, IsEmpty());
  Delete();
  Run();
  EXPECT_THAT(forgotten_.names, ElementsAre("hello"));
}

TEST_F(JobReconcilerTest, ForgetsTheWorkersOfAPredecessorThatWasReplacedBetweenTwoPasses) {
  Create();
  Run();
  Delete();
  Create();
  Run();
  EXPECT_THAT(forgotten_.names, ElementsAre("hello"));
  Run();
  EXPECT_THAT(forgotten_.names, ElementsAre("hello"));
}

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

TEST_F(JobReconcilerTest, EndsNoJobForAFieldThatAnotherVersionsSchemaMayKnow) {
  confirmed_ = absl::FailedPreconditionError("the definition is newer");
  Create("tomorrow");
  ASSERT_TRUE(manager_.RunUntilIdle().ok());
  EXPECT_EQ(confirmations_, 1);
  EXPECT_EQ(State(), "");
  confirmed_ = absl::OkStatus();
  clock_.Advance(std::chrono::minutes(1));
  Run();
  EXPECT_EQ(State(), "Failed");
  EXPECT_EQ(confirmations_, 2) << "a job that has ended is not asked about again";
}

TEST_F(JobReconcilerTest, AsksForNoConfirmationOfAJobOfAnotherController) {
  Create("tomorrow", "kueue.x-k8s.io/multikueue");
  Run();
  EXPECT_EQ(confirmations_, 0);
  EXPECT_EQ(State(), "");
}

TEST_F(JobReconcilerTest, AsksForNoConfirmationOfAJobThatCanBeRead) {
  Create();
  Run();
  EXPECT_EQ(confirmations_, 0);
  EXPECT_EQ(Pods(), 1u);
}

TEST_F(JobReconcilerTest, LooksAgainForAPodThatWentBeforeTheCacheCouldShowIt) {
  bool gone = false;
  client_.SetObserver([&](const kube::testing::Call& call) {
    if (call.verb != Verb::kCreate || call.type != "pods" || gone) return;
    gone = true;
    ASSERT_TRUE(
        store_->Delete(kube::kPod, call.key, {.grace_period = std::chrono::seconds(0)}).ok());
    store_->ExpireHistory();  // so that no watch tells of it either
  });
  Create();
  Run();
  ASSERT_TRUE(gone);
  ASSERT_EQ(Pods(), 0u) << "it is believed to be there";
  for (int i = 0; i < 7; ++i) {
    clock_.Advance(std::chrono::seconds(10));
    Run();
  }
  EXPECT_EQ(Pods(), 1u);
}

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
