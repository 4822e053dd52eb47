// Conformance of Delete, finalizers, grace periods and owner garbage collection.
#include "operator/kube/conformance/client_conformance.h"
#include "operator/kube/errors.h"

namespace ringmaster::kube::conformance {
namespace {

constexpr char kFinalizer[] = "ringmaster.dev/test";
// Of which no kubelet, or what stands for one, takes care.
constexpr char kNoNode[] = "no-node";
constexpr char kBareServer[] = "this server runs without its controllers";

Json OwnedBy(Json object, const ResourceType& type, const Json& owner) {
  AddOwnerReference(object, OwnerReference(type, owner));
  return object;
}

TEST_P(ClientConformance, DeleteRemovesAndTheSecondIsNotFound) {
  Create(kConfigMap, ConfigMap("a"));
  Delete(kConfigMap, "a");
  EXPECT_FALSE(Exists(kConfigMap, "a"));
  EXPECT_EQ(client().Delete(kConfigMap, Key("a"), {}).code(), absl::StatusCode::kNotFound);
}

TEST_P(ClientConformance, DeleteChecksUidAndResourceVersion) {
  const Json object = Create(kConfigMap, ConfigMap("a"));
  EXPECT_EQ(
      client().Delete(kConfigMap, Key("a"), {.uid = "11111111-2222-4333-8444-555555555555"}).code(),
      absl::StatusCode::kAborted);
  EXPECT_EQ(client().Delete(kConfigMap, Key("a"), {.resource_version = "4000000000"}).code(),
            absl::StatusCode::kAborted);
  Delete(kConfigMap, "a", {.uid = Uid(object), .resource_version = ResourceVersion(object)});
  EXPECT_FALSE(Exists(kConfigMap, "a"));
}

TEST_P(ClientConformance, AFinalizerHoldsADeletingObjectUntilItIsRemoved) {
  Json object = ConfigMap("a");
  object["metadata"]["finalizers"] = {kFinalizer};
  Create(kConfigMap, object);
  Delete(kConfigMap, "a");
  object = Get(kConfigMap, "a");
  EXPECT_TRUE(IsDeleting(object));
  Delete(kConfigMap, "a");  // again: nothing changes
  EXPECT_EQ(ResourceVersion(Get(kConfigMap, "a")), ResourceVersion(object));
  object["metadata"].erase("finalizers");
  ASSERT_TRUE(client().Update(kConfigMap, object).ok());
  EXPECT_FALSE(Exists(kConfigMap, "a"));
}

TEST_P(ClientConformance, ADeletingObjectTakesNoNewFinalizer) {
  Json object = ConfigMap("a");
  object["metadata"]["finalizers"] = {kFinalizer};
  Create(kConfigMap, object);
  Delete(kConfigMap, "a");
  object = Get(kConfigMap, "a");
  object["metadata"]["finalizers"].push_back("ringmaster.dev/late");
  EXPECT_EQ(Reason(client().Update(kConfigMap, object).status()), kReasonInvalid);
  ASSERT_TRUE(client().Patch(kConfigMap, Key("a"), {{"metadata", {{"finalizers", nullptr}}}}).ok());
}

TEST_P(ClientConformance, APodThatIsNotBoundGoesAtOnce) {
  Create(kPod, Pod("a"));
  Delete(kPod, "a");
  EXPECT_FALSE(Exists(kPod, "a"));
}

TEST_P(ClientConformance, ABoundPodStaysForItsGracePeriodUntilItsNodeConfirms) {
  Create(kPod, Pod("a", kNoNode));
  Delete(kPod, "a", {.grace_period = std::chrono::seconds(300)});
  const Json pod = Get(kPod, "a");
  EXPECT_TRUE(IsDeleting(pod));
  EXPECT_EQ(FindInt(pod, {"metadata", "deletionGracePeriodSeconds"}), 300);
  Delete(kPod, "a", {.grace_period = std::chrono::seconds(0)});
  EXPECT_FALSE(Exists(kPod, "a"));
}

TEST_P(ClientConformance, ASecondDeleteMayOnlyShortenTheGracePeriod) {
  Create(kPod, Pod("a", kNoNode));
  Delete(kPod, "a", {.grace_period = std::chrono::seconds(300)});
  Delete(kPod, "a", {.grace_period = std::chrono::seconds(600)});
  EXPECT_EQ(FindInt(Get(kPod, "a"), {"metadata", "deletionGracePeriodSeconds"}), 300);
  Delete(kPod, "a", {.grace_period = std::chrono::seconds(200)});
  EXPECT_EQ(FindInt(Get(kPod, "a"), {"metadata", "deletionGracePeriodSeconds"}), 200);
  Delete(kPod, "a", {.grace_period = std::chrono::seconds(0)});
}

TEST_P(ClientConformance, APodThatHasEndedGoesAtOnceThoughItIsBound) {
  Json pod = Create(kPod, Pod("a", kNoNode));
  ASSERT_TRUE(
      client().PatchStatus(kPod, Key("a"), {{"phase", "Succeeded"}}, ResourceVersion(pod)).ok());
  Delete(kPod, "a");
  EXPECT_FALSE(Exists(kPod, "a"));
}

TEST_P(ClientConformance, WhatAnOwnerOwnsIsCollectedAfterIt) {
  if (!server_->HasControllers()) GTEST_SKIP() << kBareServer;
  const Json job = Create(kTrainingJob, Job("owner"));
  const Json pod = Create(kPod, OwnedBy(Pod("child"), kTrainingJob, job));
  Create(kConfigMap, OwnedBy(ConfigMap("grandchild"), kPod, pod));
  Create(kConfigMap, ConfigMap("stranger"));
  Delete(kTrainingJob, "owner");
  EventuallyGone(kPod, "child");
  EventuallyGone(kConfigMap, "grandchild");
  EXPECT_TRUE(Exists(kConfigMap, "stranger"));
}

TEST_P(ClientConformance, AnObjectWhoseOwnerNeverWasIsCollected) {
  if (!server_->HasControllers()) GTEST_SKIP() << kBareServer;
  Json job = Create(kTrainingJob, Job("owner"));
  Delete(kTrainingJob, "owner");
  EventuallyGone(kTrainingJob, "owner");
  ASSERT_TRUE(client().Create(kConfigMap, OwnedBy(ConfigMap("late"), kTrainingJob, job)).ok());
  EventuallyGone(kConfigMap, "late");
}

TEST_P(ClientConformance, AnObjectWithTwoOwnersStaysUntilBothAreGone) {
  if (!server_->HasControllers()) GTEST_SKIP() << kBareServer;
  const Json first = Create(kTrainingJob, Job("first"));
  const Json second = Create(kTrainingJob, Job("second"));
  Json shared = ConfigMap("shared");
  AddOwnerReference(shared, OwnerReference(kTrainingJob, first));
  AddOwnerReference(shared, OwnerReference(kTrainingJob, second, /*controller=*/false));
  Create(kConfigMap, shared);
  Delete(kTrainingJob, "first");
  Eventually("the reference to be dropped",
             [&] { return !IsOwnedBy(Get(kConfigMap, "shared"), Uid(first)); });
  EXPECT_TRUE(IsOwnedBy(Get(kConfigMap, "shared"), Uid(second)));
  Delete(kTrainingJob, "second");
  EventuallyGone(kConfigMap, "shared");
}

TEST_P(ClientConformance, OrphaningKeepsWhatWasOwned) {
  if (!server_->HasControllers()) GTEST_SKIP() << kBareServer;
  const Json job = Create(kTrainingJob, Job("owner"));
  Create(kConfigMap, OwnedBy(ConfigMap("child"), kTrainingJob, job));
  Delete(kTrainingJob, "owner", {.propagation = Propagation::kOrphan});
  EventuallyGone(kTrainingJob, "owner");
  EXPECT_FALSE(IsOwnedBy(Get(kConfigMap, "child"), Uid(job)));
}

TEST_P(ClientConformance, ForegroundDeletionWaitsForWhatBlocksIt) {
  if (!server_->HasControllers()) GTEST_SKIP() << kBareServer;
  const Json job = Create(kTrainingJob, Job("owner"));
  Json child = OwnedBy(ConfigMap("child"), kTrainingJob, job);
  child["metadata"]["finalizers"] = {kFinalizer};
  Create(kConfigMap, child);
  Delete(kTrainingJob, "owner", {.propagation = Propagation::kForeground});
  Eventually("the child to be deleting", [&] { return IsDeleting(Get(kConfigMap, "child")); });
  EXPECT_TRUE(IsDeleting(Get(kTrainingJob, "owner")));
  const Json release = {{"metadata", {{"finalizers", nullptr}}}};
  ASSERT_TRUE(client().Patch(kConfigMap, Key("child"), release).ok());
  EventuallyGone(kConfigMap, "child");
  EventuallyGone(kTrainingJob, "owner");
}

TEST_P(ClientConformance, ForegroundDeletionGoesOnWhenADependentLetsGo) {
  if (!server_->HasControllers()) GTEST_SKIP() << kBareServer;
  const Json job = Create(kTrainingJob, Job("owner"));
  Json child = OwnedBy(ConfigMap("child"), kTrainingJob, job);
  child["metadata"]["finalizers"] = {kFinalizer};
  Create(kConfigMap, child);
  Delete(kTrainingJob, "owner", {.propagation = Propagation::kForeground});
  Eventually("the child to be deleting", [&] { return IsDeleting(Get(kConfigMap, "child")); });
  const Json let_go = {{"metadata", {{"ownerReferences", nullptr}}}};
  ASSERT_TRUE(client().Patch(kConfigMap, Key("child"), let_go).ok());
  EventuallyGone(kTrainingJob, "owner");
  const Json release = {{"metadata", {{"finalizers", nullptr}}}};
  ASSERT_TRUE(client().Patch(kConfigMap, Key("child"), release).ok());
}

TEST_P(ClientConformance, TwoControllersOfOneObjectAreRefused) {
  const Json job = Create(kTrainingJob, Job("owner"));
  const Json object = OwnedBy(OwnedBy(ConfigMap("a"), kTrainingJob, job), kTrainingJob,
                              Create(kTrainingJob, Job("b")));
  EXPECT_EQ(Reason(client().Create(kConfigMap, object).status()), kReasonInvalid);
}

}  // namespace
}  // namespace ringmaster::kube::conformance
