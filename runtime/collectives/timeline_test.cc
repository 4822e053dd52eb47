#include "runtime/collectives/timeline.h"

#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/file.h"
#include "common/temporary_folder.h"

namespace ringmaster::collectives {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

class TimelineTest : public ::testing::Test {
 protected:
  json Read() const { return json::parse(ReadFile(path()).value()); }
  std::filesystem::path path() const { return folder_.path() / "made" / "worker.json"; }
  std::unique_ptr<Timeline> Open(size_t most_bytes = Timeline::kMostBytes) const {
    return Timeline::Open(path(), 3, "digits-3-0", most_bytes).value();
  }

  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
};

TEST_F(TimelineTest, HoldsPhasesByTrackInsideOneAnother) {
  {
    const auto timeline = Open();
    {
      const TimelineTrack track(timeline.get(), "conv \"1\"");
      const Phase outer("outer");
      const Phase inner("inner");
    }
    std::thread([&] {
      const TimelineTrack track(timeline.get(), "fc");
      const Phase other("other");
    }).join();
    const Phase nowhere("nowhere");
  }
  std::vector<std::string> names;
  std::map<std::string, json> phases;
  for (const json& event : Read()) {
    if (event["ph"] == "M" && event.contains("args") && event["args"].contains("name"))
      names.push_back(event["args"]["name"]);
    if (event["ph"] == "X") phases[event["name"]] = event;
    EXPECT_EQ(event["pid"], 3);
  }
  EXPECT_THAT(names, ElementsAre("digits-3-0", "conv \"1\"", "fc"));
  ASSERT_EQ(phases.size(), 3U);
  const json& outer = phases["outer"];
  const json& inner = phases["inner"];
  EXPECT_LE(outer["ts"], inner["ts"]);
  EXPECT_GE(outer["ts"].get<int64_t>() + outer["dur"].get<int64_t>(),
            inner["ts"].get<int64_t>() + inner["dur"].get<int64_t>());
  EXPECT_EQ(outer["tid"], inner["tid"]);
  EXPECT_NE(outer["tid"], phases["other"]["tid"]);
}

TEST_F(TimelineTest, ATrackOfNoTimelineHidesTheOuterOne) {
  {
    const auto timeline = Open();
    const TimelineTrack track(timeline.get(), "outer");
    {
      const TimelineTrack none(nullptr, "none");
      const Phase hidden("hidden");
    }
    const Phase seen("seen");
  }
  std::vector<std::string> phases;
  for (const json& event : Read()) {
    if (event["ph"] == "X") phases.push_back(event["name"]);
  }
  EXPECT_THAT(phases, ElementsAre("seen"));
}

TEST_F(TimelineTest, EndsAtItsSizeAndSaysSo) {
  {
    const auto timeline = Open(4096);
    const TimelineTrack track(timeline.get(), "t");
    for (int i = 0; i < 1000; ++i) const Phase phase("p");
  }
  EXPECT_LT(std::filesystem::file_size(path()), 4096 + 500U);
  EXPECT_THAT(Read().dump(), ::testing::HasSubstr("the timeline ends here"));
}

TEST_F(TimelineTest, SaysWhyAFileCannotBeMade) {
  const auto timeline = Timeline::Open(folder_.path() / "made" / "..", 0, "w");
  EXPECT_FALSE(timeline.ok());
}

}  // namespace
}  // namespace ringmaster::collectives
