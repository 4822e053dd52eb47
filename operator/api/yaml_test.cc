#include "operator/api/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::api {
namespace {

using Json = nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Errors(std::string_view text) {
  std::vector<std::string> lines;
  for (const Diagnostic& error : ParseYaml(text).errors) {
    lines.push_back(std::to_string(error.line) + ": " + error.path + ": " + error.message);
  }
  return lines;
}

Json Value(std::string_view text) {
  const YamlDocument document = ParseYaml(text);
  EXPECT_THAT(Errors(text), IsEmpty()) << text;
  return document.value;
}

TEST(YamlTest, ResolvesPlainScalarsAsKubectlDoes) {
  const std::vector<std::pair<std::string_view, Json>> cases = {
      {"yes", true},
      {"Off", false},
      {"y", true},
      {"~", nullptr},
      {"null", nullptr},
      {"10", 10},
      {"010", 8},
      {"0o17", 15},
      {"0x1F", 31},
      {"0b101", 5},
      {"-0x10", -16},
      {"+5", 5},
      {"1_000", 1000},
      {"08", 8.0},
      {"1e3", 1000.0},
      {".5", 0.5},
      {"-1.5e-3", -0.0015},
      {"1.", 1.0},
      {"1e", "1e"},
      {"2026-01-31", "2026-01-31"},
      {"1:30", "1:30"},
      {"0x", "0x"},
      {"-", "-"},
      {"yES", "yES"},
      {"v1", "v1"},
      {"9223372036854775807", 9223372036854775807},
      {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()},
      {"18446744073709551615", 18446744073709551615u}};
  for (const auto& [text, value] : cases) {
    const auto resolved = ResolvePlainScalar(text);
    ASSERT_TRUE(resolved.has_value()) << text;
    EXPECT_EQ(*resolved, value) << text;
    EXPECT_EQ(resolved->type() == Json::value_t::number_float, value.is_number_float()) << text;
  }
  for (const std::string_view text : {".nan", ".inf", "-.Inf", "1e999"})
    EXPECT_FALSE(ResolvePlainScalar(text)) << text;
}

TEST(YamlTest, KeepsQuotedScalarsStrings) {
  EXPECT_EQ(Value("a: \"yes\"\nb: '010'\nc: |\n  5\nd: !!str 5"),
            (Json{{"a", "yes"}, {"b", "010"}, {"c", "5\n"}, {"d", "5"}}));
}

TEST(YamlTest, TurnsKeysIntoStrings) {
  EXPECT_EQ(Value("1: a\non: b\n\"2\": c\nx: {010: d}"),
            (Json{{"1", "a"}, {"true", "b"}, {"2", "c"}, {"x", {{"8", "d"}}}}));
}

TEST(YamlTest, KnowsTheLineOfEveryPath) {
  const YamlDocument document =
      ParseYaml("# one\nspec:\n  list:\n  - a: 1\n    b: 2\n  - {c: 3}\n  \"x.y\": 4\n");
  EXPECT_EQ(document.lines.LineOf("spec"), 2);
  EXPECT_EQ(document.lines.LineOf("spec.list[0].b"), 5);
  EXPECT_EQ(document.lines.LineOf("spec.list[1].c"), 6);
  EXPECT_EQ(document.lines.LineOf("spec[\"x.y\"]"), 7);
  EXPECT_EQ(document.lines.LineOf("spec.list[1].missing"), 6);
  EXPECT_EQ(document.lines.LineOf("spec.missing.deeper"), 2);
}

TEST(YamlTest, ExpandsAliasesAndMergeKeys) {
  EXPECT_EQ(
      Value("base: &b {x: 1, v: 2}\nuse: *b\nover:\n  <<: *b\n  v: 3\nboth:\n  <<: [*b, {z: 4}]"),
      (Json{{"base", {{"x", 1}, {"v", 2}}},
            {"use", {{"x", 1}, {"v", 2}}},
            {"over", {{"x", 1}, {"v", 3}}},
            {"both", {{"x", 1}, {"v", 2}, {"z", 4}}}}));
  EXPECT_THAT(Errors("a:\n  <<: 5"), ElementsAre("2: a[\"<<\"]: << merges maps only"));
}

TEST(YamlTest, ReportsEveryDuplicateKeyWithBothLines) {
  EXPECT_THAT(Errors("a: 1\nb: {c: 1, c: 2}\na: 2"),
              ElementsAre("2: b.c: the key is there twice; first on line 2",
                          "3: a: the key is there twice; first on line 1"));
}

TEST(YamlTest, RefusesNumbersThatAreNotFinite) {
  EXPECT_THAT(Errors("a: .nan\nb: [1, .inf]"), ElementsAre("1: a: .nan is not a finite number",
                                                           "2: b[1]: .inf is not a finite number"));
}

TEST(YamlTest, RefusesKeysThatAreNoScalars) {
  EXPECT_THAT(Errors("? [a, b]\n: 1"), ElementsAre(HasSubstr("a key must be a scalar")));
  EXPECT_THAT(Errors("? {a: b}\n: 1"), ElementsAre(HasSubstr("a key must be a scalar")));
  EXPECT_THAT(Errors("~: 1"), ElementsAre(HasSubstr("a key is missing")));
}

TEST(YamlTest, RefusesUnknownTagsAndTagsThatDoNotFit) {
  EXPECT_THAT(Errors("a: !foo 5\nb: !!int x"),
              ElementsAre("1: a: '5' cannot be read as !foo",
                          "2: b: 'x' cannot be read as tag:yaml.org,2002:int"));
}

TEST(YamlTest, TakesOneDocumentOnly) {
  EXPECT_EQ(Value("---\na: 1\n---\n"), (Json{{"a", 1}}));
  EXPECT_EQ(Value("# comment\n---\na: 1\n...\n"), (Json{{"a", 1}}));
  EXPECT_THAT(Errors("a: 1\n---\nb: 2"),
              ElementsAre("3: : a second document starts here; one file holds one object"));
}

TEST(YamlTest, ReportsSyntaxErrorsWithTheirLine) {
  const auto errors = Errors("a: 1\nb: [1, 2\nc: 3\n");
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_THAT(errors[0], ::testing::MatchesRegex("[23]: : .+"));
  EXPECT_TRUE(ParseYaml("a: [").value.is_null());
  EXPECT_THAT(Errors("a: *nowhere"), ElementsAre(HasSubstr("1: : ")));
}

TEST(YamlTest, BoundsWhatAliasesAddUpTo) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 1; j < 10; ++j) bomb += ", " + before;
    bomb += "]\n";
  }
  EXPECT_THAT(Errors(bomb), ElementsAre(HasSubstr("more than 100000 values")));
}

TEST(YamlTest, BoundsDepth) {
  EXPECT_THAT(Errors(std::string(200, '[') + std::string(200, ']')),
              ElementsAre(HasSubstr("nested deeper than 100")));
  EXPECT_THAT(Errors("a: &a [*a]"), ElementsAre(HasSubstr("inside what it refers to")));
  std::string ladder = "a0: &a0 [x]\n";
  for (int i = 1; i < 120; ++i) {
    const std::string name = "a" + std::to_string(i);
    ladder += name + ": &" + name + " [*a" + std::to_string(i - 1) + "]\n";
  }
  EXPECT_THAT(Errors(ladder), ElementsAre(HasSubstr("nested deeper than 100")));
}

TEST(YamlTest, RefusesTextThatIsTooLargeOrNoText) {
  EXPECT_THAT(Errors(std::string(kMaxYamlBytes + 1, ' ')),
              ElementsAre(HasSubstr("bytes are more than")));
  EXPECT_THAT(Errors(std::string("a: 1\nb: \x04", 9)), ElementsAre("2: : control character 0x04"));
  EXPECT_THAT(Errors(std::string("a: \0", 4)), ElementsAre("1: : control character 0x00"));
  EXPECT_THAT(Errors("a: \xff\xfe"), ElementsAre("0: : the text is not UTF-8"));
}

}  // namespace
}  // namespace ringmaster::api
