#include "operator/kube/memory/field_set.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ringmaster::kube::memory {
namespace {

const Json kApplied = Json::parse(
    R"({"spec": {"containers": [{"name": "main", "image": "a"}], "args": ["x", "y"]}})");

TEST(FieldSetTest, KeyedListsAreItemByItemAndOthersAreOneLeaf) {
  const Json expected = Json::parse(R"({"f:spec": {
      "f:containers": {"k:{\"name\":\"main\"}": {".": {}, "f:name": {}, "f:image": {}}},
      "f:args": {}}})");
  EXPECT_EQ(FieldsOf(kApplied), expected);
}

TEST(FieldSetTest, MergingAddsAndChangesItemsByTheirKey) {
  Json target = Json::parse(
      R"({"spec": {"containers": [{"name": "side"}, {"name": "main", "tty": true}], "args": ["z"]}})");
  MergeApplied(target, kApplied);
  EXPECT_EQ(target, Json::parse(R"({"spec": {
      "containers": [{"name": "side"}, {"name": "main", "tty": true, "image": "a"}], "args": ["x", "y"]}})"));
}

TEST(FieldSetTest, RemovingDropsWhatIsNoLongerKeptAndWhatBecomesEmpty) {
  Json object = Json::parse(
      R"({"spec": {"containers": [{"name": "main"}, {"name": "side"}], "env": {"a": 1}}, "n": 1})");
  const Json dropped = FieldsOf(object);
  const Json kept = FieldsOf(Json::parse(R"({"spec": {"containers": [{"name": "side"}]}})"));
  RemoveFields(object, dropped, kept);
  EXPECT_EQ(object, Json::parse(R"({"spec": {"containers": [{"name": "side"}]}})"));
}

TEST(FieldSetTest, OnlyFieldsOfBothWithOtherValuesDisagree) {
  const Json current =
      Json::parse(R"({"spec": {"containers": [{"name": "main", "image": "b", "tty": true}]}})");
  const Json theirs = FieldsOf(current);
  const auto found = Disagreements(FieldsOf(kApplied), theirs, current, kApplied);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(ToText(found[0]), R"(.spec.containers[name="main"].image)");
  Json left = theirs;
  EraseSteps(left, found[0]);
  EXPECT_TRUE(Disagreements(FieldsOf(kApplied), left, current, kApplied).empty());
}

}  // namespace
}  // namespace ringmaster::kube::memory
