#include "operator/api/salvage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/parse.h"
#include "operator/api/testing.h"

namespace ringmaster::api {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::SizeIs;

Json Digits() {
  Json object = ParseManifest(kDigits, "job.yaml").value().object;
  object["metadata"]["uid"] = "u1";
  object["status"] = {{"round", 3}};
  return object;
}

std::vector<std::string> Paths(const StoredJob& stored) {
  std::vector<std::string> paths;
  for (const schema::Problem& problem : stored.problems) paths.push_back(problem.path);
  return paths;
}

TEST(ReadStoredTest, ReadsAValidJobWithItsDerivedDefaults) {
  const StoredJob stored = ReadStored(Digits());
  EXPECT_THAT(stored.problems, IsEmpty());
  EXPECT_EQ(stored.job.spec.workers.max_replicas, 4);
  EXPECT_EQ(stored.job.status->round, 3);
  EXPECT_EQ(stored.job.metadata["uid"], "u1");
}

TEST(ReadStoredTest, NamesWhatTheSchemaAndWhatTheMeaningRefuseAtOnce) {
  Json object = Digits();
  object["spec"]["surprise"] = 1;
  object["spec"]["suspend"] = "maybe";
  object["spec"]["trainer"]["batch"]["shards"] = 65;
  EXPECT_THAT(Paths(ReadStored(object)),
              IsSupersetOf({"spec.surprise", "spec.suspend", "spec.trainer.batch.shards"}));
}

TEST(ReadStoredTest, KeepsWhatIsRightBesideWhatIsWrong) {
  Json object = Digits();
  object["spec"]["surprise"] = 1;
  object["spec"]["cleanPodPolicy"] = "None";
  const StoredJob stored = ReadStored(object);
  EXPECT_THAT(Paths(stored), ElementsAre("spec.surprise"));
  EXPECT_EQ(stored.job.spec.clean_pod_policy, training::v1alpha1::CleanPodPolicy::kNone);
  EXPECT_EQ(stored.job.metadata["name"], "digits");
  EXPECT_EQ(stored.job.status->round, 3);
}

TEST(ReadStoredTest, KnowsWhoseJobItIsWhenNothingElseCanBeRead) {
  Json object = Digits();
  object["spec"] = {{"managedBy", "someone.dev/else"}, {"workers", "four"}, {"trainer", 1}};
  const StoredJob stored = ReadStored(object);
  EXPECT_THAT(Paths(stored), Contains("spec.workers"));
  EXPECT_EQ(stored.job.spec.managed_by, "someone.dev/else");
  EXPECT_EQ(stored.job.status->round, 3);
  EXPECT_EQ(stored.job.metadata["uid"], "u1");
}

TEST(ReadStoredTest, ReadsNothingOfASpecThatIsNoObject) {
  for (const Json& spec : {Json("text"), Json(), Json::array({1, 2}), Json(7)}) {
    Json object = Digits();
    object["spec"] = spec;
    EXPECT_THAT(ReadStored(object).problems, Not(IsEmpty())) << spec;
  }
}

TEST(ReadStoredTest, NamesAStatusThatIsNotItsOwn) {
  Json object = Digits();
  object["status"]["round"] = "three";
  const StoredJob stored = ReadStored(object);
  EXPECT_THAT(Paths(stored), ElementsAre("status.round"));
  EXPECT_THAT(stored.problems, SizeIs(1));
}

TEST(ReadStoredTest, ReadsALaterObjectAsIfItHadReadNoneBefore) {
  const Json earlier = Digits();
  std::vector<Json> later(9, earlier);
  later[1]["status"] = {{"round", 4}, {"state", "Running"}};
  later[2].erase("status");
  later[3]["metadata"]["labels"] = {{"team", "vision"}};
  later[4]["spec"]["workers"]["replicas"] = 3;
  later[5]["status"]["round"] = "four";
  later[6]["metadata"]["name"] = "Upper";
  later[7]["surprise"] = 1;
  later[8].erase("spec");
  for (const Json& object : later) {
    for (const Json& before : later) {
      const StoredJob anew = ReadStored(object);
      const StoredJob quick = ReadStored(object, before, ReadStored(before));
      EXPECT_EQ(quick.job, anew.job) << object << "\nafter " << before;
      EXPECT_EQ(quick.problems, anew.problems) << object << "\nafter " << before;
    }
  }
}

}  // namespace
}  // namespace ringmaster::api
