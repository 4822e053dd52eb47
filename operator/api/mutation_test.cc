// Damages a valid manifest at random, as text and as a tree, many times: the parser never crashes,
// and what it refuses it refuses with a place. The seed is printed; RINGMASTER_TEST_SEED repeats a
// run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "operator/api/parse.h"
#include "operator/api/salvage.h"
#include "operator/api/testing.h"
#include "operator/api/yaml.h"
#include "tests/support/random_test.h"

namespace ringmaster::api {
namespace {

using Json = nlohmann::json;

class MutationTest : public ringmaster::testing::RandomTest {
 protected:
  void DamageText(std::string& text) {
    static const std::string kBytes = "{}[]:,#&*!|>'\"%@`-?~<=\n\t 019.eEyn\xc3\xff";
    const std::size_t at = Below(text.size());
    switch (Below(4)) {
      case 0:
        text[at] = kBytes[Below(kBytes.size())];
        break;
      case 1:
        text.insert(at, 1, kBytes[Below(kBytes.size())]);
        break;
      case 2:
        text.erase(at, 1 + Below(8));
        break;
      default:
        text.insert(at, text.substr(Below(text.size()), 1 + Below(40)));
    }
    if (text.empty()) text = "x";
  }

  // Any value of the tree.
  Json& Pick(Json& value) {
    if (!value.is_structured() || value.empty() || Below(6) == 0) return value;
    auto child = value.begin();
    std::advance(child, static_cast<std::ptrdiff_t>(Below(value.size())));
    return Pick(*child);
  }

  void DamageTree(Json& object) {
    static const std::vector<Json> kValues = {
        nullptr,        true,           -1,           0, 1e300, 4.5, "", "text", Json::array(),
        Json::object(), {1, "two", {}}, {{"name", 5}}};
    Json& victim = Pick(object);
    if (Below(2) == 0 && victim.is_object() && !victim.empty()) {
      auto entry = victim.begin();
      std::advance(entry, static_cast<std::ptrdiff_t>(Below(victim.size())));
      const Json moved = entry.value();
      const std::string key = entry.key();
      victim.erase(key);
      if (Below(2) == 0) victim[key + "x"] = moved;
    } else {
      victim = kValues[Below(kValues.size())];
    }
  }

  static void ParsesOrSaysWhere(const std::string& text) {
    const auto parsed = ParseManifest(text, "job.yaml");
    if (parsed.ok()) {
      const auto again = ParseManifest(parsed->object.dump(), "again.yaml");
      ASSERT_TRUE(again.ok()) << Message(again.status()) << "\n" << text;
      EXPECT_EQ(again->job, parsed->job);
      return;
    }
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(parsed.status()), ::testing::StartsWith("job.yaml")) << text;
  }
};

TEST_F(MutationTest, DamagedTextParsesOrIsRefusedWithAPlace) {
  for (int i = 0; i < 500; ++i) {
    std::string text = kDigits;
    for (std::size_t n = 1 + Below(4); n > 0; --n) DamageText(text);
    ASSERT_NO_FATAL_FAILURE(ParsesOrSaysWhere(text));
  }
}

TEST_F(MutationTest, DamagedTreesParseOrAreRefusedWithAPlace) {
  const Json whole = ParseYaml(kDigits).value;
  for (int i = 0; i < 500; ++i) {
    Json object = whole;
    for (std::size_t n = 1 + Below(4); n > 0; --n) DamageTree(object);
    ASSERT_NO_FATAL_FAILURE(ParsesOrSaysWhere(object.dump()));
  }
}

TEST_F(MutationTest, ADamagedObjectIsReadAlikeWithAnEarlierOneAndWithout) {
  static const std::vector<std::string> kParts = {"metadata", "spec", "status", "status"};
  Json whole = ParseManifest(kDigits, "job.yaml").value().object;
  whole["metadata"]["uid"] = "u1";
  whole["status"] = {{"round", 3}, {"state", "Running"}, {"workers", {{"desired", 4}}}};
  for (int i = 0; i < 500; ++i) {
    Json earlier = whole, object = whole;
    if (Below(2) == 0) DamageTree(earlier[kParts[Below(kParts.size())]]);
    DamageTree(object[kParts[Below(kParts.size())]]);
    const StoredJob anew = ReadStored(object);
    const StoredJob quick = ReadStored(object, earlier, ReadStored(earlier));
    ASSERT_EQ(quick.job, anew.job) << object << "\nafter " << earlier;
    ASSERT_EQ(quick.problems, anew.problems) << object << "\nafter " << earlier;
  }
}

}  // namespace
}  // namespace ringmaster::api
