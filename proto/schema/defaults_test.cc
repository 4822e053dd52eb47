#include "proto/schema/defaults.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "proto/schema/check.h"

namespace ringmaster::schema {
namespace {

using Json = nlohmann::json;

const Message kLeaf = {
    .name = "Leaf",
    .fields = {{.name = "id", .required = true},
               {.name = "size", .type = Type::kDouble, .default_json = "4"}},
};

const Message kTree = {
    .name = "Tree",
    .fields = {{.name = "count", .type = Type::kInt32, .default_json = "0"},
               {.name = "limit", .type = Type::kInt32},
               {.name = "word", .default_json = "\"on\""},
               {.name = "part",
                .type = Type::kMessage,
                .message = &kLeaf,
                .default_json = R"({"id": "a", "size": 4})"},
               {.name = "choice", .type = Type::kMessage, .message = &kLeaf},
               {.name = "parts", .type = Type::kMessage, .shape = Shape::kList, .message = &kLeaf},
               {.name = "wanted", .shape = Shape::kList, .required = true},
               {.name = "counts", .type = Type::kInt32, .shape = Shape::kMap},
               {.name = "raw", .type = Type::kRaw}},
};

Json Dropped(const std::string& text) {
  Json object = Json::parse(text);
  DropDefaults(kTree, object);
  return object;
}

TEST(DropDefaultsTest, LeavesOutWhatHasItsDefaultAtEveryDepth) {
  EXPECT_EQ(Dropped(R"({"count": 0, "word": "on", "part": {"id": "a", "size": 4.0},
                        "parts": [{"id": "b", "size": 4}, {"id": "c", "size": 5}]})"),
            Json::parse(R"({"parts": [{"id": "b"}, {"id": "c", "size": 5}]})"));
}

TEST(DropDefaultsTest, KeepsWhatIsThereWithoutADefault) {
  const char* kept = R"({"limit": 0, "choice": {"id": ""}, "wanted": [], "raw": {"size": 4}})";
  EXPECT_EQ(Dropped(kept), Json::parse(kept));
}

TEST(DropDefaultsTest, LeavesOutEmptyListsAndMaps) {
  EXPECT_EQ(Dropped(R"({"parts": [], "counts": {}})"), Json::object());
}

TEST(DropDefaultsTest, WhatIsLeftOutIsPutBackByTheCheck) {
  Json whole = Json::parse(R"({"limit": 3, "part": {"id": "z"}, "wanted": ["x"],
                               "parts": [{"id": "b"}]})");
  ASSERT_TRUE(CheckAndDefault(kTree, whole).empty());
  Json object = whole;
  DropDefaults(kTree, object);
  EXPECT_LT(object.size(), whole.size());
  ASSERT_TRUE(CheckAndDefault(kTree, object).empty());
  EXPECT_EQ(object, whole);
}

TEST(DropDefaultsTest, AFurtherFieldWithItsDefaultChangesNothingOfTheText) {
  Message newer = kTree;
  newer.fields.push_back({.name = "tomorrow", .type = Type::kInt32, .default_json = "7"});
  Json old_one = Json::parse(R"({"limit": 3, "wanted": ["x"]})");
  Json new_one = old_one;
  ASSERT_TRUE(CheckAndDefault(kTree, old_one).empty());
  ASSERT_TRUE(CheckAndDefault(newer, new_one).empty());
  ASSERT_NE(new_one, old_one);
  DropDefaults(kTree, old_one);
  DropDefaults(newer, new_one);
  EXPECT_EQ(new_one.dump(), old_one.dump());
}

}  // namespace
}  // namespace ringmaster::schema
