#include "proto/schema/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ringmaster::schema {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Enum kColour = {.name = "Colour", .values = {{"Red", ""}, {"DeepBlue", ""}}};

const Message kPart = {
    .name = "Part",
    .fields =
        {{.name = "id", .required = true},
         {.name = "size", .type = Type::kInt32, .default_json = "4", .minimum = 1, .maximum = 9}},
};

const Message kThing = {
    .name = "Thing",
    .fields = {{.name = "count", .type = Type::kInt64},
               {.name = "share", .type = Type::kDouble, .minimum = 0, .exclusive_minimum = true},
               {.name = "on", .type = Type::kBool},
               {.name = "text", .min_length = 2, .max_length = 4},
               {.name = "word",
                .max_length = 8,
                .pattern = "[a-z]+",
                .pattern_help = "lower-case letters"},
               {.name = "colour", .type = Type::kEnum, .enumeration = &kColour},
               {.name = "when", .type = Type::kTimestamp},
               {.name = "part",
                .type = Type::kMessage,
                .message = &kPart,
                .default_json = R"({"id": "a"})"},
               {.name = "parts",
                .type = Type::kMessage,
                .shape = Shape::kList,
                .message = &kPart,
                .max_items = 3,
                .list_map_keys = {"id"}},
               {.name = "counts", .type = Type::kInt32, .shape = Shape::kMap, .minimum = 0},
               {.name = "raw", .type = Type::kRaw, .raw_fields = {{"spec.containers[0].command"}}},
               {.name = "fixed", .immutable = true}},
};

std::vector<std::string> Lines(const std::vector<Problem>& problems) {
  std::vector<std::string> lines;
  for (const Problem& problem : problems) lines.push_back(problem.path + ": " + problem.message);
  return lines;
}

std::vector<std::string> Check(Json object) {
  return Lines(CheckAndDefault(kThing, object));
}

TEST(CheckTest, FillsInDefaultsInsideDefaults) {
  Json object = Json::object();
  EXPECT_THAT(CheckAndDefault(kThing, object), IsEmpty());
  EXPECT_EQ(object, (Json{{"part", {{"id", "a"}, {"size", 4}}}}));
}

TEST(CheckTest, TakesNullForAbsent) {
  Json object = {{"part", nullptr}, {"count", nullptr}};
  EXPECT_THAT(CheckAndDefault(kThing, object), IsEmpty());
  EXPECT_EQ(object["part"]["size"], 4);
  EXPECT_FALSE(object.contains("count"));
}

TEST(CheckTest, LeavesWhatIsThere) {
  Json object = {{"part", {{"id", "b"}, {"size", 9}}}, {"raw", {{"anything", {1, "x", nullptr}}}}};
  const Json before = object;
  EXPECT_THAT(CheckAndDefault(kThing, object), IsEmpty());
  EXPECT_EQ(object, before);
}

TEST(CheckTest, KeepsEveryBitOfA64BitInteger) {
  Json object = Json::parse(R"({"count": 9223372036854775807})");
  EXPECT_THAT(CheckAndDefault(kThing, object), IsEmpty());
  EXPECT_EQ(object["count"].get<std::int64_t>(), 9223372036854775807);
  EXPECT_THAT(Check(Json::parse(R"({"count": 9223372036854775808})")),
              ElementsAre("count: 9223372036854775808 does not fit into 64 bits"));
  EXPECT_THAT(Check(Json::parse(R"({"count": 1e300})")),
              ElementsAre("count: 1e+300 does not fit into 64 bits"));
}

TEST(CheckTest, TakesAWholeNumberedDoubleForAnInteger) {
  Json object = {{"count", 4.0}};
  EXPECT_THAT(CheckAndDefault(kThing, object), IsEmpty());
  EXPECT_TRUE(object["count"].is_number_integer());
  EXPECT_THAT(Check({{"count", 4.5}}),
              ElementsAre("count: must be an integer, not a fractional number (4.5)"));
}

TEST(CheckTest, NamesTheTypeThatWasFound) {
  EXPECT_THAT(
      Check(Json::parse(
          R"({"count": "4", "share": [], "on": "yes", "text": 3, "colour": 1, "when": 5, "part": 1,
                                    "parts": {}, "counts": [], "raw": "x"})")),
      ElementsAre(
          "count: must be an integer, not a string (\"4\")", "share: must be a number, not a list",
          "on: must be true or false, not a string (\"yes\")",
          "text: must be a string, not an integer (3)",
          "colour: must be one of Red, DeepBlue, not an integer (1)",
          "when: must be a time such as 2026-01-31T12:00:00Z, not an integer (5)",
          "part: must be an object, not an integer (1)", "parts: must be a list, not an object",
          "counts: must be an object, not a list", "raw: must be an object, not a string (\"x\")"));
  Json list = Json::array();
  EXPECT_THAT(Lines(CheckAndDefault(kThing, list)), ElementsAre(": must be an object, not a list"));
}

TEST(CheckTest, RefusesValuesOutOfBounds) {
  EXPECT_THAT(Check({{"share", 0}}), ElementsAre("share: 0 is not more than 0"));
  EXPECT_THAT(Check({{"part", {{"id", "a"}, {"size", 0}}}}),
              ElementsAre("part.size: 0 is less than 1"));
  EXPECT_THAT(Check({{"part", {{"id", "a"}, {"size", 10}}}}),
              ElementsAre("part.size: 10 is more than 9"));
  EXPECT_THAT(Check({{"counts", {{"a.b/c", -1}}}}),
              ElementsAre("counts[\"a.b/c\"]: -1 is less than 0"));
  EXPECT_THAT(Check({{"part", {{"id", "a"}, {"size", 3000000000}}}}),
              ElementsAre("part.size: 3000000000 does not fit into 32 bits"));
}

TEST(CheckTest, CountsCharactersAndNotBytes) {
  EXPECT_THAT(Check({{"text", "äöüß"}}), IsEmpty());
  EXPECT_THAT(Check({{"text", "ä"}}), ElementsAre("text: 1 characters are fewer than 2"));
  EXPECT_THAT(Check({{"text", "12345"}}), ElementsAre("text: 5 characters are more than 4"));
  EXPECT_THAT(Check({{"text", ""}}), ElementsAre("text: must not be empty"));
}

TEST(CheckTest, SaysWhatAPatternWants) {
  EXPECT_THAT(Check({{"word", "abc"}}), IsEmpty());
  EXPECT_THAT(Check({{"word", "abC"}}), ElementsAre("word: \"abC\" must be lower-case letters"));
}

TEST(CheckTest, ListsTheValuesOfAnEnum) {
  EXPECT_THAT(Check({{"colour", "DeepBlue"}}), IsEmpty());
  EXPECT_THAT(
      Check({{"colour", "deep_blue"}}),
      ElementsAre("colour: \"deep_blue\" is not one of Red, DeepBlue; did you mean DeepBlue?"));
  EXPECT_THAT(Check({{"colour", "Black"}}),
              ElementsAre("colour: \"Black\" is not one of Red, DeepBlue"));
}

TEST(CheckTest, RefusesATimeThatIsNone) {
  EXPECT_THAT(Check({{"when", "2026-01-31T12:00:00+01:00"}}), IsEmpty());
  EXPECT_THAT(Check({{"when", "yesterday"}}),
              ElementsAre("when: \"yesterday\" is not a time such as 2026-01-31T12:00:00Z"));
}

TEST(CheckTest, RefusesUnknownFieldsWithASuggestion) {
  EXPECT_THAT(Check({{"cuont", 1}, {"xyzzy", 1}}),
              ElementsAre("cuont: unknown field; did you mean count?", "xyzzy: unknown field"));
}

TEST(CheckTest, ChecksEveryItemOfAList) {
  EXPECT_THAT(
      Check(Json::parse(R"({"parts": [{"id": "a"}, {"id": "a"}, {"size": 1}, {"id": "d"}]})")),
      ElementsAre("parts: 4 items are more than 3", "parts[2].id: required, but missing",
                  "parts[1]: another item has the same id: {\"id\":\"a\"}"));
}

TEST(CheckTest, LooksIntoRawObjectsOnlyWhereRulesDo) {
  EXPECT_THAT(
      Check({{"raw", {{"spec", {{"containers", Json::array({{{"command", {"a", "b"}}}})}}}}}}),
      IsEmpty());
  EXPECT_THAT(Check({{"raw", {{"spec", {{"containers", Json::array()}}}}}}), IsEmpty());
  EXPECT_THAT(Check({{"raw", {{"spec", {{"containers", {{"command", "a"}}}}}}}}),
              ElementsAre("raw.spec.containers: must be a list, not an object"));
  EXPECT_THAT(
      Check({{"raw", {{"spec", {{"containers", Json::array({{{"command", {"a", 1}}}})}}}}}}),
      ElementsAre("raw.spec.containers[0].command[1]: must be a string, not an integer (1)"));
}

TEST(CheckTest, ReportsTextThatIsNotUtf8WithoutThrowing) {
  EXPECT_THAT(Check({{"colour", "\xff\xfe"}}), ::testing::SizeIs(1));
  EXPECT_THAT(Check({{"\xff", 1}}), ::testing::SizeIs(1));
}

TEST(CheckTest, ShortensWhatItQuotes) {
  const auto lines = Check({{"colour", std::string(5000, 'x')}});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_LT(lines[0].size(), 200u);
}

TEST(CheckUpdateTest, RefusesChangeAndRemovalOfAnImmutableField) {
  EXPECT_THAT(CheckUpdate(kThing, {{"fixed", "a"}}, {{"fixed", "a"}}), IsEmpty());
  EXPECT_THAT(CheckUpdate(kThing, Json::object(), {{"fixed", "a"}}), IsEmpty());
  EXPECT_THAT(Lines(CheckUpdate(kThing, {{"fixed", "a"}}, {{"fixed", "b"}})),
              ElementsAre(::testing::StartsWith("fixed: cannot change")));
  EXPECT_THAT(Lines(CheckUpdate(kThing, {{"fixed", "a"}}, Json::object())),
              ElementsAre(::testing::StartsWith("fixed: cannot change")));
}

TEST(CheckNameTest, AllowsOnlyDnsLabelsWithinTheLength) {
  const Resource resource = {.max_name_length = 8};
  EXPECT_EQ(CheckName(resource, "a-1"), "");
  for (const std::string_view name : {"", "A", "1a", "a-", "-a", "a.b", "a_b", "ä"}) {
    EXPECT_THAT(CheckName(resource, name), ::testing::HasSubstr("must be lower-case letters"))
        << name;
  }
  EXPECT_THAT(CheckName(resource, "abcdefghi"),
              ::testing::HasSubstr("9 characters: must be at most 8"));
}

}  // namespace
}  // namespace ringmaster::schema
