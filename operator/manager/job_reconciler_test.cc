#include "operator/manager/job_reconciler.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/memory/store.h"
#include "operator/kube/object.h"
#include "operator/manager/manager.h"

namespace ringmaster::manager {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const kube::ObjectKey kHello{"default", "hello"};

class ForgottenJobs : public WorkerLink {
 public:
  reconcile::WorkersView SnapshotFor(const kube::ObjectKey&) override { return {}; }
  void Announce(const kube::ObjectKey&, const reconcile::Announcement&) override {}
  void Send(const kube::ObjectKey&, const std::string&, const reconcile::WorkerCommand&) override {}
  void Forget(const kube::ObjectKey& job) override { names.push_back(job.name); }

  std::vector<std::string> names;
};

class JobReconcilerTest : public ::testing::Test {
 protected:
  void Create() {
    kube::Json job = kube::NewObject(kube::kTrainingJob, kHello);
    job["spec"] = kube::Json::parse(
        R"({"workers": {"replicas": 1, "template": {"spec": {"containers": [{"name": "w", "command": ["true"]}]}}}})");
    ASSERT_TRUE(store_->Create(kube::kTrainingJob, job).ok());
  }
  void Delete() { ASSERT_TRUE(store_->Delete(kube::kTrainingJob, kHello, {}).ok()); }
  void Run() { ASSERT_TRUE(manager_.RunUntilIdle().ok()); }

  FakeClock clock_;
  std::unique_ptr<kube::memory::MemoryStore> store_ =
      kube::memory::MemoryStore::Open({.clock = &clock_}).value();
  ForgottenJobs forgotten_;
  Manager manager_{{}, *store_, forgotten_, clock_};
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

}  // namespace
}  // namespace ringmaster::manager
