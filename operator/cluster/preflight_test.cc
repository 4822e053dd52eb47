#include "operator/cluster/preflight.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/file.h"
#include "operator/cluster/testing.h"
#include "operator/kube/testing/fault_client.h"

namespace ringmaster::cluster {
namespace {

using kube::Json;
using ::testing::AllOf;
using testing::CheckedInCrd;
using ::testing::HasSubstr;
using testing::MakeCluster;

// The message of the check against this CRD; empty when it passes.
std::string Verdict(const Json& crd) {
  const auto cluster = MakeCluster(crd);
  const absl::Status status = CheckCustomResource(*cluster, "");
  const bool missing = crd.is_null();
  EXPECT_TRUE(status.ok() ||
              (missing ? absl::IsNotFound(status) : absl::IsFailedPrecondition(status)))
      << status;
  return std::string(status.message());
}

Json& SchemaIn(Json& crd) {
  return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

TEST(PreflightTest, TheCheckedInDefinitionIsCurrent) {
  EXPECT_EQ(Verdict(CheckedInCrd()), "");
}

TEST(PreflightTest, SaysHowToInstallWhatIsMissing) {
  EXPECT_THAT(Verdict(nullptr),
              AllOf(HasSubstr("does not know trainingjobs.training.ringmaster.dev"),
                    HasSubstr("kubectl apply")));
}

TEST(PreflightTest, NamesTheFieldsThatAnOlderDefinitionLacks) {
  Json crd = CheckedInCrd();
  SchemaIn(crd)["properties"]["spec"]["properties"]["workers"]["properties"].erase("minReplicas");
  SchemaIn(crd)["properties"]["status"]["properties"]["members"]["items"]["properties"].erase(
      "podUID");
  EXPECT_THAT(Verdict(crd), AllOf(HasSubstr("older than this operator"),
                                  HasSubstr("spec.workers.minReplicas, status.members.podUID"),
                                  HasSubstr("kubectl apply")));
}

TEST(PreflightTest, NamesTheValuesThatAnOlderDefinitionRefuses) {
  Json crd = CheckedInCrd();
  SchemaIn(crd)["properties"]["spec"]["properties"]["launch"]["properties"]["mode"]["enum"] = {
      "Exec"};
  EXPECT_THAT(Verdict(crd), HasSubstr("spec.launch.mode=MPI"));
}

TEST(PreflightTest, NamesTheFieldsAndValuesThatOnlyANewerDefinitionHas) {
  Json crd = CheckedInCrd();
  Json& spec = SchemaIn(crd)["properties"]["spec"]["properties"];
  spec["tomorrow"] = {{"type", "string"}, {"default", "yes"}};
  spec["launch"]["properties"]["mode"]["enum"].push_back("Slurm");
  SchemaIn(crd)["properties"]["status"]["properties"]["members"]["items"]["properties"]["zone"] = {
      {"type", "string"}};
  EXPECT_THAT(
      Verdict(crd),
      AllOf(HasSubstr("newer than this operator"),
            HasSubstr("does not know spec.launch.mode=Slurm, spec.tomorrow, status.members.zone"),
            HasSubstr("upgrade the chart")));
}

TEST(PreflightTest, LooksNotIntoWhatItPassesThroughWhole) {
  Json crd = CheckedInCrd();
  Json& workers = SchemaIn(crd)["properties"]["spec"]["properties"]["workers"]["properties"];
  workers["template"]["properties"]["spec"] = {{"type", "object"}};
  EXPECT_EQ(Verdict(crd), "");
}

TEST(PreflightTest, SaysBothOfADefinitionThatLacksAFieldAndHasAnother) {
  Json crd = CheckedInCrd();
  Json& spec = SchemaIn(crd)["properties"]["spec"]["properties"];
  spec.erase("suspend");
  spec["paused"] = {{"type", "boolean"}};
  EXPECT_THAT(Verdict(crd), HasSubstr("it lacks spec.suspend and has spec.paused"));
}

TEST(PreflightTest, RefusesADefinitionThatDoesNotServeTheVersion) {
  Json crd = CheckedInCrd();
  crd["spec"]["versions"][0]["served"] = false;
  EXPECT_THAT(Verdict(crd), HasSubstr("does not serve version v1alpha1"));
}

TEST(PreflightTest, AMissingSchemaIsAnOlderDefinition) {
  Json crd = CheckedInCrd();
  crd["spec"]["versions"][0].erase("schema");
  EXPECT_THAT(Verdict(crd), HasSubstr("lacks"));
}

TEST(PreflightTest, WithoutTheRightToReadItIsEnoughThatJobsAreServed) {
  const auto cluster = MakeCluster(nullptr);
  kube::testing::FaultClient client(*cluster);
  client.FailNext({.type = kCustomResourceDefinition.Qualified()},
                  absl::PermissionDeniedError("no"));
  EXPECT_TRUE(CheckCustomResource(client, "ns").ok());
  client.FailNext({.type = kCustomResourceDefinition.Qualified()},
                  absl::PermissionDeniedError("no"));
  client.FailNext({.type = kube::kTrainingJob.Qualified()}, absl::NotFoundError("no such path"));
  EXPECT_THAT(std::string(CheckCustomResource(client, "ns").message()), HasSubstr("does not know"));
}

TEST(PreflightTest, AnApiServerThatIsAwaySaysNothingOfTheDefinition) {
  const auto cluster = MakeCluster();
  kube::testing::FaultClient client(*cluster);
  client.FailNext({}, absl::UnavailableError("away"));
  EXPECT_TRUE(absl::IsUnavailable(CheckCustomResource(client, "")));
}

TEST(PreflightTest, AsksAgainForAReviewThatWasLost) {
  const auto cluster = MakeCluster(CheckedInCrd());
  kube::testing::FaultClient client(*cluster);
  const std::vector<Permission> needed = {{"", "pods", "get", "", ""}};
  const kube::testing::CallFilter reviews{.type = kSelfSubjectAccessReview.Qualified()};
  client.FailNext(reviews, absl::UnavailableError("cut off"), 0, 2);
  client.FailNext(reviews, absl::PermissionDeniedError("no such question"));
  EXPECT_EQ(CheckPermissions(client, needed), absl::OkStatus());
  client.FailNext(reviews, absl::UnavailableError("away"), 0, 9);
  EXPECT_TRUE(absl::IsUnavailable(CheckPermissions(client, needed)));
}

TEST(PreflightTest, PermissionsReadAsSentences) {
  const auto needed = NeededPermissions("jobs", "system", "lease", "secret");
  std::vector<std::string> texts;
  for (const Permission& permission : needed) texts.push_back(permission.ToString());
  EXPECT_THAT(texts, ::testing::IsSupersetOf(
                         {"create pods in namespace jobs",
                          "patch trainingjobs/status.training.ringmaster.dev in namespace jobs",
                          "update leases.coordination.k8s.io lease in namespace system",
                          "create tokenreviews.authentication.k8s.io everywhere"}));
}

// "verb group/resource name" of each.
std::set<std::string> Granted(const Json& rules) {
  std::set<std::string> all;
  for (const Json& rule : rules) {
    for (const std::string group : rule["apiGroups"]) {
      for (const std::string resource : rule["resources"]) {
        for (const std::string verb : rule["verbs"]) {
          for (const std::string name : rule.value("resourceNames", Json::array({""})))
            all.insert(verb + " " + group + "/" + resource + " " + name);
        }
      }
    }
  }
  return all;
}

TEST(PreflightTest, NeedsWhatTheChartGrantsAndNothingElse) {
  const Json chart = Json::parse(*ReadFile("charts/ringmaster/files/rbac.json"));
  std::map<std::string, std::set<std::string>> needed;
  for (const Permission& each : NeededPermissions("watched", "own", "NAME", "NAME-rendezvous")) {
    needed[each.ns].insert(each.verb + " " + each.group + "/" + each.resource + " " + each.name);
  }
  // Without this one it goes on, but cannot tell whether the definition is current.
  needed[""].insert("get apiextensions.k8s.io/customresourcedefinitions " +
                    kube::kTrainingJob.Qualified());
  EXPECT_EQ(Granted(chart["watched"]), needed["watched"]);
  EXPECT_EQ(Granted(chart["own"]), needed["own"]);
  std::set<std::string> gangs;
  for (const reconcile::GangApi& api : reconcile::kGangApis) {
    std::set<std::string> used;
    for (const Permission& each : GangPermissions(api, "watched")) {
      used.insert(each.verb + " " + each.group + "/" + each.resource + " " + each.name);
    }
    gangs.insert(std::string(api.name));
    EXPECT_EQ(Granted(chart["gang"][std::string(api.name)]), used);
  }
  EXPECT_EQ(chart["gang"].size(), gangs.size());
  EXPECT_EQ(Granted(chart["cluster"]), needed[""]);
}

}  // namespace
}  // namespace ringmaster::cluster
