// Conformance of Create, Update, Patch and PatchStatus.
#include "operator/kube/conformance/client_conformance.h"
#include "operator/kube/errors.h"

namespace ringmaster::kube::conformance {
namespace {

TEST_P(ClientConformance, CreateSetsWhatIsTheServersToSet) {
  Json job = Job("a");
  job["metadata"]["uid"] = "mine";
  job["metadata"]["generation"] = 7;
  job["status"] = {{"round", 3}};
  const Json stored = Create(kTrainingJob, job);
  EXPECT_NE(Uid(stored), "");
  EXPECT_NE(Uid(stored), "mine");
  EXPECT_NE(ResourceVersion(stored), "");
  EXPECT_EQ(Generation(stored), 1);
  EXPECT_TRUE(FindTime(stored, {"metadata", "creationTimestamp"}).has_value());
  EXPECT_EQ(Find(stored, {"status", "round"}), nullptr);
  EXPECT_EQ(Get(kTrainingJob, "a"), stored);
}

TEST_P(ClientConformance, CreateRefusesATakenName) {
  Create(kConfigMap, ConfigMap("a"));
  const auto again = client().Create(kConfigMap, ConfigMap("a"));
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Reason(again.status()), kReasonAlreadyExists);
}

TEST_P(ClientConformance, CreateRefusesANameThatIsNoDnsName) {
  const auto created = client().Create(kConfigMap, ConfigMap("Under_Score"));
  EXPECT_EQ(created.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Reason(created.status()), kReasonInvalid);
  EXPECT_NE(std::string(created.status().message()).find("metadata.name"), std::string::npos);
}

TEST_P(ClientConformance, CreateRefusesAResourceVersion) {
  Json object = ConfigMap("a");
  object["metadata"]["resourceVersion"] = "1";
  const auto created = client().Create(kConfigMap, object);
  EXPECT_EQ(Reason(created.status()), kReasonBadRequest);
}

TEST_P(ClientConformance, CreateRefusesABodyOfAnotherKind) {
  Json object = ConfigMap("a");
  object["kind"] = "Secret";
  EXPECT_EQ(Reason(client().Create(kConfigMap, object).status()), kReasonBadRequest);
}

TEST_P(ClientConformance, CreateRefusesALabelValueWithASpace) {
  Json object = ConfigMap("a");
  SetLabel(object, "app", "two words");
  EXPECT_EQ(Reason(client().Create(kConfigMap, object).status()), kReasonInvalid);
}

TEST_P(ClientConformance, GenerateNameMakesDistinctNamesWithThePrefix) {
  Json object = ConfigMap("");
  object["metadata"].erase("name");
  object["metadata"]["generateName"] = "data-";
  const std::string first = Name(Create(kConfigMap, object));
  const std::string second = Name(Create(kConfigMap, object));
  EXPECT_EQ(first.rfind("data-", 0), 0u);
  EXPECT_EQ(first.size(), 10u);
  EXPECT_NE(first, second);
}

TEST_P(ClientConformance, ResourceVersionsChangeWithEveryWriteAndOnlyThen) {
  Json object = Create(kConfigMap, ConfigMap("a", {{"k", "1"}}));
  const std::string first = ResourceVersion(object);
  const Json same = Must(client().Update(kConfigMap, object));
  EXPECT_EQ(ResourceVersion(same), first);
  object["data"]["k"] = "2";
  const Json changed = Must(client().Update(kConfigMap, object));
  EXPECT_NE(ResourceVersion(changed), first);
  EXPECT_EQ(changed["data"]["k"], "2");
}

TEST_P(ClientConformance, UpdateRefusesAStaleResourceVersion) {
  const Json stale = Create(kConfigMap, ConfigMap("a"));
  Json fresh = stale;
  fresh["data"]["k"] = "1";
  ASSERT_TRUE(client().Update(kConfigMap, fresh).ok());
  Json late = stale;
  late["data"]["k"] = "2";
  const auto refused = client().Update(kConfigMap, late);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Reason(refused.status()), kReasonConflict);
  EXPECT_EQ(Get(kConfigMap, "a")["data"]["k"], "1");
}

TEST_P(ClientConformance, UpdateWithoutAResourceVersionIsUnconditionalForConfigMaps) {
  Create(kConfigMap, ConfigMap("a"));
  EXPECT_TRUE(client().Update(kConfigMap, ConfigMap("a", {{"k", "1"}})).ok());
  EXPECT_EQ(Get(kConfigMap, "a")["data"]["k"], "1");
}

TEST_P(ClientConformance, UpdateOfACustomResourceNeedsAResourceVersion) {
  Create(kTrainingJob, Job("a"));
  EXPECT_EQ(Reason(client().Update(kTrainingJob, Job("a")).status()), kReasonInvalid);
}

TEST_P(ClientConformance, UpdateRefusesAnotherUid) {
  Json object = Create(kConfigMap, ConfigMap("a"));
  object["metadata"]["uid"] = "11111111-2222-4333-8444-555555555555";
  EXPECT_EQ(client().Update(kConfigMap, object).status().code(), absl::StatusCode::kAborted);
}

TEST_P(ClientConformance, UpdateOfAnAbsentObjectIsNotFound) {
  const auto updated = client().Update(kConfigMap, ConfigMap("ghost"));
  EXPECT_EQ(updated.status().code(), absl::StatusCode::kNotFound);
}

TEST_P(ClientConformance, GenerationCountsChangesOfTheSpecOnly) {
  Json job = Create(kTrainingJob, Job("a"));
  SetLabel(job, "team", "red");
  job = Must(client().Update(kTrainingJob, job));
  EXPECT_EQ(Generation(job), 1);
  job = Must(client().PatchStatus(kTrainingJob, Key("a"), {{"round", 1}}, ResourceVersion(job)));
  EXPECT_EQ(Generation(job), 1);
  job["spec"]["workers"]["replicas"] = 3;
  job = Must(client().Update(kTrainingJob, job));
  EXPECT_EQ(Generation(job), 2);
}

TEST_P(ClientConformance, UpdateLeavesTheStatusAlone) {
  Json job = Create(kTrainingJob, Job("a"));
  job = Must(client().PatchStatus(kTrainingJob, Key("a"), {{"round", 1}}, ResourceVersion(job)));
  job["status"]["round"] = 9;
  job["spec"]["suspend"] = true;
  job = Must(client().Update(kTrainingJob, job));
  EXPECT_EQ(job["status"]["round"], 1);
  EXPECT_EQ(job["spec"]["suspend"], true);
}

TEST_P(ClientConformance, PatchStatusMergesAndRemovesWithNull) {
  Json job = Create(kTrainingJob, Job("a"));
  job = Must(client().PatchStatus(kTrainingJob, Key("a"), {{"round", 1}, {"selector", "a=b"}},
                                  ResourceVersion(job)));
  job = Must(client().PatchStatus(kTrainingJob, Key("a"), {{"round", 2}, {"selector", nullptr}},
                                  ResourceVersion(job)));
  EXPECT_EQ(job["status"]["round"], 2);
  EXPECT_EQ(Find(job, {"status", "selector"}), nullptr);
}

TEST_P(ClientConformance, PatchStatusRefusesAStaleResourceVersion) {
  const Json job = Create(kTrainingJob, Job("a"));
  ASSERT_TRUE(
      client().PatchStatus(kTrainingJob, Key("a"), {{"round", 1}}, ResourceVersion(job)).ok());
  const auto late =
      client().PatchStatus(kTrainingJob, Key("a"), {{"round", 2}}, ResourceVersion(job));
  EXPECT_EQ(late.status().code(), absl::StatusCode::kAborted);
}

TEST_P(ClientConformance, PatchStatusNeedsAResourceVersion) {
  Create(kTrainingJob, Job("a"));
  const auto blind = client().PatchStatus(kTrainingJob, Key("a"), {{"round", 1}}, "");
  EXPECT_EQ(Reason(blind.status()), kReasonBadRequest);
}

TEST_P(ClientConformance, PatchMergesMapsAndReplacesLists) {
  Json object = ConfigMap("a", {{"k", "1"}, {"gone", "x"}});
  object["metadata"]["finalizers"] = {"ringmaster.dev/one", "ringmaster.dev/two"};
  Create(kConfigMap, object);
  const Json patched =
      Must(client().Patch(kConfigMap, Key("a"),
                          {{"data", {{"k", "2"}, {"gone", nullptr}}},
                           {"metadata", {{"finalizers", {"ringmaster.dev/three"}}}}}));
  EXPECT_EQ(patched["data"], Json({{"k", "2"}}));
  EXPECT_EQ(patched["metadata"]["finalizers"], Json({"ringmaster.dev/three"}));
  ASSERT_TRUE(client().Patch(kConfigMap, Key("a"), {{"metadata", {{"finalizers", nullptr}}}}).ok());
}

TEST_P(ClientConformance, PatchTakesAResourceVersionAsPrecondition) {
  const Json object = Create(kConfigMap, ConfigMap("a"));
  const Json patch = {{"metadata", {{"resourceVersion", ResourceVersion(object)}}},
                      {"data", {{"k", "1"}}}};
  EXPECT_TRUE(client().Patch(kConfigMap, Key("a"), patch).ok());
  EXPECT_EQ(
      client()
          .Patch(kConfigMap, Key("a"), {{"metadata", patch["metadata"]}, {"data", {{"k", "2"}}}})
          .status()
          .code(),
      absl::StatusCode::kAborted);
}

TEST_P(ClientConformance, PatchLeavesTheStatusAlone) {
  Create(kTrainingJob, Job("a"));
  const Json patched = Must(client().Patch(
      kTrainingJob, Key("a"), {{"spec", {{"suspend", true}}}, {"status", {{"round", 5}}}}));
  EXPECT_EQ(Find(patched, {"status", "round"}), nullptr);
  EXPECT_EQ(patched["spec"]["suspend"], true);
}

TEST_P(ClientConformance, GetOfAnAbsentObjectIsNotFound) {
  const auto found = client().Get(kConfigMap, Key("ghost"));
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Reason(found.status()), kReasonNotFound);
}

TEST_P(ClientConformance, PodsGetTheDefaultsThatTheReconcilerReliesUpon) {
  const Json pod = Create(kPod, Pod("a"));
  EXPECT_EQ(pod["spec"]["restartPolicy"], "Always");
  EXPECT_EQ(pod["spec"]["terminationGracePeriodSeconds"], 30);
  EXPECT_EQ(pod["status"]["phase"], "Pending");
}

TEST_P(ClientConformance, APodWithoutContainersIsRefused) {
  Json pod = Pod("a");
  pod["spec"]["containers"] = Json::array();
  EXPECT_EQ(Reason(client().Create(kPod, pod).status()), kReasonInvalid);
}

TEST_P(ClientConformance, APodsCommandCannotBeChanged) {
  Json pod = Create(kPod, Pod("a"));
  pod["spec"]["containers"][0]["command"] = {"other"};
  EXPECT_EQ(Reason(client().Update(kPod, pod).status()), kReasonInvalid);
}

}  // namespace
}  // namespace ringmaster::kube::conformance
