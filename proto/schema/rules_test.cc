#include "proto/schema/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ringmaster::schema {
namespace {

using Json = nlohmann::json;

std::string Said(const Rule& rule, const Json& object) {
  const auto problem = Evaluate(rule, object, "spec");
  return problem ? problem->path + ": " + problem->message : "";
}

TEST(RulesTest, ComparesTwoFieldsWhereBothArePresent) {
  const Rule rule = {RuleKind::kLessOrEqual, {"low", "in.high"}, "lower it"};
  EXPECT_EQ(Said(rule, {{"low", 3}, {"in", {{"high", 3}}}}), "");
  EXPECT_EQ(Said(rule, {{"low", 3}}), "");
  EXPECT_EQ(Said(rule, {{"low", "x"}, {"in", {{"high", 3}}}}), "");
  EXPECT_EQ(Said(rule, {{"low", 9}, {"in", {{"high", 8}}}}),
            "spec.low: 9 is more than in.high (8); lower it");
}

TEST(RulesTest, AsksForWhatAFieldNeeds) {
  const Rule rule = {RuleKind::kRequires, {"a", "b"}, "add it"};
  EXPECT_EQ(Said(rule, Json::object()), "");
  EXPECT_EQ(Said(rule, {{"a", 1}, {"b", 1}}), "");
  EXPECT_EQ(Said(rule, {{"a", 1}}), "spec.a: a needs b; add it");
}

TEST(RulesTest, CountsChoicesAndNamesThoseThatAreSet) {
  const std::vector<std::string> paths = {"a", "list[0].b", "c"};
  const Rule one = {RuleKind::kExactlyOne, paths, ""};
  const Json both = {{"a", 1}, {"list", Json::array({{{"b", 1}}})}};
  EXPECT_EQ(Said(one, {{"c", Json::object()}}), "");
  EXPECT_EQ(Said(one, {{"a", nullptr}}), "spec: set exactly one of a, list[0].b, c (none is set)");
  EXPECT_EQ(Said(one, both), "spec: set exactly one of a, list[0].b, c (a and list[0].b are set)");
  EXPECT_EQ(Said({RuleKind::kAtMostOne, paths, "keep one"}, both),
            "spec: set at most one of a, list[0].b, c (a and list[0].b are set); keep one");
  EXPECT_EQ(Said({RuleKind::kAtMostOne, paths, ""}, Json::object()), "");
  EXPECT_EQ(Said({RuleKind::kAtLeastOne, paths, ""}, both), "");
  EXPECT_EQ(Said({RuleKind::kAtLeastOne, paths, ""}, Json::object()),
            "spec: set at least one of a, list[0].b, c (none is set)");
}

}  // namespace
}  // namespace ringmaster::schema
