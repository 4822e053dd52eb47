// A manager over a store in memory whose calls a test may fail, and one small job in it.
#ifndef RINGMASTER_OPERATOR_MANAGER_TESTING_JOB_RECONCILER_FIXTURE_H_
#define RINGMASTER_OPERATOR_MANAGER_TESTING_JOB_RECONCILER_FIXTURE_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"
#include "operator/kube/testing/fault_client.h"
#include "operator/manager/manager.h"

namespace ringmaster::manager::testing {

inline const kube::ObjectKey kHello{"default", "hello"};

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
      tries_ += call.verb == kube::testing::Verb::kCreate && call.type == "pods";
      status_writes_ += call.verb == kube::testing::Verb::kPatchStatus;
    });
  }
  void RefusePods(const std::string& words, int times) {
    client_.FailNext({.verb = kube::testing::Verb::kCreate, .type = "pods"},
                     absl::PermissionDeniedError(words), 0, times);
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

}  // namespace ringmaster::manager::testing

#endif  // RINGMASTER_OPERATOR_MANAGER_TESTING_JOB_RECONCILER_FIXTURE_H_
