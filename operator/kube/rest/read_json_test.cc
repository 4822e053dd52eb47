#include "operator/kube/rest/read_json.h"

#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ringmaster::kube::rest {
namespace {

Json Lean(std::string_view text) {
  return ReadJson(text, {.managed_fields = ManagedFields::kSkip, .spec = {}});
}

TEST(ReadJsonTest, LeavesOutTheManagedFieldsOfEveryObjectInTheText) {
  EXPECT_EQ(Lean(R"({"metadata": {"managedFields": [{"a": {"b": [1]}}, 2], "name": "a"}})"),
            Json::parse(R"({"metadata": {"name": "a"}})"));
  EXPECT_EQ(Lean(R"({"items": [{"metadata": {"name": "a", "managedFields": []}},
                               {"metadata": {"managedFields": "x", "name": "b"}, "spec": 1}]})"),
            Json::parse(R"({"items": [{"metadata": {"name": "a"}},
                                      {"metadata": {"name": "b"}, "spec": 1}]})"));
  EXPECT_EQ(Lean(R"({"type": "ADDED", "object": {"metadata": {"managedFields": {"x": null}}}})"),
            Json::parse(R"({"type": "ADDED", "object": {"metadata": {}}})"));
}

TEST(ReadJsonTest, KeepsWhatIsOnlyCalledSo) {
  for (const char* text :
       {R"({"managedFields": [1]})", R"({"spec": {"managedFields": {"a": 1}}})",
        R"({"metadata": {"labels": {"managedFields": "a"}}})", R"({"metadata": "managedFields"})",
        R"({"metadata": [{"managedFields": 1}]})", R"(["metadata", {"managedFields": 1}])"}) {
    EXPECT_EQ(Lean(text), Json::parse(text)) << text;
  }
}

TEST(ReadJsonTest, ReadsEverythingWhereItIsToldTo) {
  const char* text = R"({"metadata": {"managedFields": [1]}})";
  EXPECT_EQ(ReadJson(text, {}), Json::parse(text));
}

TEST(ReadJsonTest, ReadsNoMoreOfSpecThanItIsTold) {
  const Reading reading{.managed_fields = ManagedFields::kRead,
                        .spec = std::vector<std::string>{"nodeName", "schedulingGroup"}};
  const auto lean = [&](std::string_view text) { return ReadJson(text, reading); };
  const char* pod = R"({"metadata": {"managedFields": [1], "name": "a\\\\"}, "spec":
    {"a": "}\"]", "nodeName" : "n", "containers": [{"spec": {"x": [1, 2]}}], "schedulingGroup": {"b": {}}},
    "status": {"spec": {"a": 1}}})";
  const char* rest = R"({"metadata": {"managedFields": [1], "name": "a\\\\"},
    "spec": {"nodeName": "n", "schedulingGroup": {"b": {}}}, "status": {"spec": {"a": 1}}})";
  EXPECT_EQ(lean(pod), Json::parse(rest));
  const auto event = [](std::string_view object) {
    return R"({"type": "ADDED", "object": )" + std::string(object) + "}";
  };
  EXPECT_EQ(lean(event(pod)), Json::parse(event(rest)));
  const auto list = [](std::string_view item) {
    return R"({"metadata": {"resourceVersion": "7"}, "items": [)" + std::string(item) + ", 1, " +
           std::string(item) + "]}";
  };
  EXPECT_EQ(lean(list(pod)), Json::parse(list(rest)));
  EXPECT_EQ(lean(R"({"spec": "a"})"), Json::parse(R"({"spec": "a"})"));
  EXPECT_EQ(lean(R"({"spec": {}, "items": []})"), Json::parse(R"({"spec": {}, "items": []})"));
}

TEST(ReadJsonTest, TakesWhatIsNoJsonForDiscarded) {
  for (const char* text :
       {"", "{", "[1,", R"({"a" 1})", "nul", R"({"metadata": {"managedFields": [}})", "{}x",
        R"({"metadata": {"managedFields": "})", R"({"metadata": {"managedFields": [{]}]}})",
        R"({"items": [{},]})", R"({"a": 1,})", R"({"a": "\)"}) {
    EXPECT_TRUE(Lean(text).is_discarded()) << text;
  }
}

Json Random(std::mt19937& random, int depth) {
  static constexpr const char* kNames[] = {"metadata", "items", "a", "b", "", "\xc3\xa4"};
  const auto pick = [&](unsigned count) { return random() % count; };
  switch (depth == 0 ? pick(6) : pick(8)) {
    case 0:
      return nullptr;
    case 1:
      return pick(2) == 0;
    case 2:
      return -static_cast<std::int64_t>(random());
    case 3:
      return (std::uint64_t{random()} << 32) | random();
    case 4:
      return static_cast<double>(random()) / 7;
    case 5:
      return std::string(pick(5), 'x') + "\"\n";
    case 6: {
      Json array = Json::array();
      for (unsigned i = pick(4); i > 0; --i) array.push_back(Random(random, depth - 1));
      return array;
    }
    default: {
      Json object = Json::object();
      for (unsigned i = pick(5); i > 0; --i)
        object[kNames[pick(std::size(kNames))]] = Random(random, depth - 1);
      return object;
    }
  }
}

TEST(ReadJsonTest, ReadsAnythingElseAsTheLibraryDoes) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = Random(random, 5).dump();
    ASSERT_EQ(Lean(text), Json::parse(text)) << text;
    const std::string part = text.substr(0, random() % (text.size() + 1));
    const Json whole = Json::parse(part, nullptr, false);
    ASSERT_EQ(Lean(part).is_discarded(), whole.is_discarded()) << part;
    if (!whole.is_discarded()) {
      ASSERT_EQ(Lean(part), whole) << part;
    }
  }
}

}  // namespace
}  // namespace ringmaster::kube::rest
