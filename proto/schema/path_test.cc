#include "proto/schema/path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/status.h"
#include "proto/schema/suggest.h"

namespace ringmaster::schema {
namespace {

using Json = nlohmann::json;

TEST(PathTest, ReadsBackWhatItJoined) {
  const std::string path = Join(Join(Join(Join("", "spec"), "layers"), 12), "a.b/c");
  EXPECT_EQ(path, "spec.layers[12][\"a.b/c\"]");
  const auto steps = ParsePath(path);
  ASSERT_TRUE(steps.ok()) << ringmaster::Message(steps.status());
  EXPECT_THAT(*steps, ::testing::ElementsAre(Step("spec"), Step("layers"), Step(std::size_t{12}),
                                             Step("a.b/c")));
}

TEST(PathTest, RefusesWhatIsNoPath) {
  for (const std::string_view path : {"", ".", "a.", ".a", "a..b", "a[", "a[x]", "a[-1]", "a[1",
                                      "a[\"b", "a b", "a[99999999999999999999]"}) {
    EXPECT_FALSE(ParsePath(path).ok()) << path;
  }
}

TEST(PathTest, FindsNothingWhereAStepIsMissingOrOfAnotherType) {
  const Json object = {{"a", {{"b", Json::array({1, nullptr})}}}};
  ASSERT_NE(FindPath(object, "a.b[0]"), nullptr);
  EXPECT_EQ(*FindPath(object, "a.b[0]"), 1);
  for (const std::string_view path : {"a.b[1]", "a.b[2]", "a.b.c", "a[0]", "x", "a..b"}) {
    EXPECT_EQ(FindPath(object, path), nullptr) << path;
  }
}

TEST(SuggestTest, FindsTheNearestWord) {
  const std::vector<std::string> words = {"momentum", "minReplicas", "maxReplicas", "bias"};
  EXPECT_EQ(Nearest("momentun", words), "momentum");
  EXPECT_EQ(Nearest("min_replicas", words), "minReplicas");
  EXPECT_EQ(Nearest("bais", words), "bias");
  EXPECT_EQ(Nearest("zzz", words), std::nullopt);
  EXPECT_EQ(Nearest("", words), std::nullopt);
  EXPECT_EQ(Nearest(std::string(100000, 'b'), words), std::nullopt);
}

}  // namespace
}  // namespace ringmaster::schema
