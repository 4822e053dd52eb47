#include "operator/manager/job_reconciler.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/kube/object.h"
#include "operator/kube/testing/fault_client.h"
#include "operator/manager/testing/job_reconciler_fixture.h"

namespace ringmaster::manager {
namespace {

using kube::testing::Verb;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::JobReconcilerTest;

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

}  // namespace
}  // namespace ringmaster::manager
