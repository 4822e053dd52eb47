#include "operator/api/set_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/status.h"

namespace ringmaster::api {
namespace {

using Json = nlohmann::json;

Json Set(std::string_view assignment, Json object = Json::object()) {
  const absl::Status status = SetPath(assignment, object);
  EXPECT_TRUE(status.ok()) << Message(status);
  return object;
}

std::string Error(std::string_view assignment, Json object = Json::object()) {
  const Json before = object;
  const absl::Status status = SetPath(assignment, object);
  EXPECT_EQ(object, before);
  return Message(status);
}

TEST(SetPathTest, ReadsTheValueAsTheFieldsTypeAsks) {
  EXPECT_EQ(Set("spec.trainer.epochs=3"), Json::parse(R"({"spec": {"trainer": {"epochs": 3}}})"));
  EXPECT_EQ(Set("spec.suspend=yes"), Json::parse(R"({"spec": {"suspend": true}})"));
  EXPECT_EQ(Set("spec.checkpoint.directory=010"),
            Json::parse(R"({"spec": {"checkpoint": {"directory": "010"}}})"));
  EXPECT_EQ(Set("spec.cleanPodPolicy=None"),
            Json::parse(R"({"spec": {"cleanPodPolicy": "None"}})"));
  EXPECT_EQ(Set("metadata.labels.on=1"), Json::parse(R"({"metadata": {"labels": {"on": "1"}}})"));
  EXPECT_EQ(Set("metadata.annotations[\"a.b/c\"]=x=y"),
            Json::parse(R"({"metadata": {"annotations": {"a.b/c": "x=y"}}})"));
  EXPECT_EQ(Set("spec.trainer.model={zoo: {name: lenet-bn}}"),
            Json::parse(R"({"spec": {"trainer": {"model": {"zoo": {"name": "lenet-bn"}}}}})"));
}

TEST(SetPathTest, RemovesWithNull) {
  Json object =
      Set("spec.trainer.epochs=null", Json::parse(R"({"spec": {"trainer": {"epochs": 3}}})"));
  EXPECT_TRUE(object["spec"]["trainer"]["epochs"].is_null());
}

TEST(SetPathTest, ReachesIntoListsAndRawObjects) {
  Json object = Set("spec.trainer.model.sequential.layers[0].linear.features=10");
  object = Set("spec.trainer.model.sequential.layers[1]={relu: {}}", object);
  EXPECT_EQ(object["spec"]["trainer"]["model"]["sequential"]["layers"],
            Json::parse(R"([{"linear": {"features": 10}}, {"relu": {}}])"));
  EXPECT_EQ(
      Set("spec.workers.template.spec.containers[0].image=x")["spec"]["workers"]["template"]["spec"]
                                                             ["containers"][0]["image"],
      "x");
  EXPECT_THAT(Error("spec.trainer.model.sequential.layers[3]={relu: {}}", object),
              ::testing::HasSubstr("the list has 2 items"));
}

TEST(SetPathTest, NamesWhatIsWrong) {
  EXPECT_THAT(Error("spec.trainer.epochs"), ::testing::HasSubstr("is not path=value"));
  EXPECT_THAT(Error("spec..x=1"), ::testing::HasSubstr("is not a path"));
  EXPECT_EQ(Error("spec.trainer.epoch=1"),
            "spec.trainer.epoch: unknown field; did you mean epochs?");
  EXPECT_EQ(Error("trainer.epochs=1"), "trainer: unknown field");
  EXPECT_EQ(Error("spec.workers.replicas=two"), "spec.workers.replicas: 'two' is not an integer");
  EXPECT_EQ(Error("spec.suspend=2"), "spec.suspend: '2' is not true or false");
  EXPECT_EQ(Error("spec.trainer.model=lenet"),
            "spec.trainer.model: 'lenet' is not an object: {name: value, ...}");
  EXPECT_EQ(Error("spec.trainer.data.csv.shape=8"),
            "spec.trainer.data.csv.shape: '8' is not a list: [a, b, ...]");
  EXPECT_EQ(Error("spec.workers.replicas.x=1"), "spec.workers.replicas.x: replicas has no fields");
  EXPECT_EQ(Error("spec[0]=1"), "spec[0]: not a list");
  EXPECT_EQ(Error("status.round=7"),
            "status.round: the status is the operator's; set fields of metadata and spec");
  EXPECT_THAT(Error("status={round: 7}"), ::testing::HasSubstr("status: the status is"));
  EXPECT_THAT(Error("spec.trainer.epochs=[1"), ::testing::HasSubstr("spec.trainer.epochs: '[1': "));
  EXPECT_THAT(Error("spec.trainer.epochs=1", {{"spec", 5}}),
              ::testing::HasSubstr("what holds it is not an object"));
}

}  // namespace
}  // namespace ringmaster::api
