#include "runtime/collectives/timeline.h"

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/file.h"
#include "common/status.h"
#include "common/temporary_folder.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/node_map.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/ordered_sum.h"
#include "runtime/collectives/reduce.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class TimelineTest : public ::testing::Test {
 protected:
  json Read() const { return json::parse(ReadFile(path()).value()); }
  std::filesystem::path path() const { return folder_.path() / "made" / "worker.json"; }
  std::unique_ptr<Timeline> Open(const Timeline::Options& options = {}) const {
    return Timeline::Open(path(), 3, "digits-3-0", options).value();
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
    const auto timeline = Open({.most_bytes = 4096});
    const TimelineTrack track(timeline.get(), "t");
    for (int i = 0; i < 1000; ++i) const Phase phase("p");
  }
  EXPECT_LT(std::filesystem::file_size(path()), 4096 + 500U);
  EXPECT_THAT(Read().dump(), ::testing::HasSubstr("the timeline ends here"));
}

TEST_F(TimelineTest, CountsNanosecondsFromItsBeginWhereItIsAlone) {
  {
    const auto timeline = Open({.from_epoch = false});
    const auto now = std::chrono::steady_clock::now();
    timeline->Add("t", "p", now, now + std::chrono::nanoseconds(12'034), "by a \"kernel\"");
  }
  for (const json& event : Read()) {
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["ts"].get<double>(), 0);
    EXPECT_LT(event["ts"].get<double>(), 60e6) << "a minute";
    EXPECT_DOUBLE_EQ(event["dur"].get<double>(), 12.034);
    EXPECT_EQ(event["args"]["detail"], "by a \"kernel\"");
  }
}

TEST_F(TimelineTest, SaysThatTheDiskWasFullToWhomWantsToKnow) {
  const auto timeline = Timeline::Open("/dev/full", 0, "w").value();
  EXPECT_EQ(timeline->Finish().code(), absl::StatusCode::kResourceExhausted);
  const auto fine = Open();
  EXPECT_TRUE(fine->Finish().ok());
  EXPECT_TRUE(Read().is_array());
}

TEST_F(TimelineTest, SaysWhyAFileCannotBeMade) {
  const auto timeline = Timeline::Open(folder_.path() / "made" / "..", 0, "w");
  EXPECT_FALSE(timeline.ok());
}

// What the timelines of all ranks of an operation hold, beside what every operation has.
class AlgorithmPhasesTest : public ::testing::Test {
 protected:
  std::set<std::string> PhasesOf(Algorithm algorithm,
                                 const std::function<absl::Status(Communicator&)>& operation) {
    testing::Group group(3);
    group.options.algorithm = algorithm;
    const auto path_of = [&](int rank) { return folder_.path() / std::to_string(rank); };
    group.Run([&](Communicator& comm) {
      const auto timeline = Timeline::Open(path_of(comm.rank()), comm.rank(), "w").value();
      const TimelineTrack track(timeline.get(), "gradient");
      EXPECT_TRUE(operation(comm).ok()) << comm.status();
    });
    std::set<std::string> phases;
    for (int rank = 0; rank < 3; ++rank) {
      for (const json& event : json::parse(ReadFile(path_of(rank)).value())) {
        if (event["ph"] == "X") phases.insert(event["name"].get<std::string>());
      }
    }
    return phases;
  }

  static absl::Status Allreduce(Communicator& comm) {
    std::vector<float> data(1000, 1.0f);
    return comm.Allreduce(Reduction::kSum, data, data, "gradient");
  }
  // The first two ranks share a node, with doubling between the nodes.
  static absl::Status AllreduceInTwoLevels(Communicator& comm) {
    const std::vector<std::string> machines = {"a", "a", "b"};
    const NodeMap nodes(machines);
    std::vector<float> data(1000, 1.0f);
    Operation operation;
    operation.kind = OperationKind::kAllreduce;
    const Method method{Algorithm::kTwoLevel, Algorithm::kDoubling, comm.segment_bytes(), &nodes};
    return comm.Run(operation, [&](Transport& transport) {
      return collectives::Allreduce(transport, method, Reduction::kSum, data, data);
    });
  }
  // The last rank has nothing to add.
  static absl::Status SumInOrder(Communicator& comm) {
    OrderedSum<float> sum(2, 10'000);
    std::vector<float> data(10'000, 1.0f);
    if (comm.rank() < 2) RM_RETURN_IF_ERROR(sum.Add(comm.rank(), data));
    return sum.Reduce(comm, data, "gradient");
  }

  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
};

TEST_F(AlgorithmPhasesTest, OfACallByAHandleAreThoseOfTheCallBehindItsWait) {
  const std::set<std::string> at_once = PhasesOf(Algorithm::kRing, Allreduce);
  std::set<std::string> started = PhasesOf(Algorithm::kRing, [](Communicator& comm) {
    return comm.Start([&] { return Allreduce(comm); }).Wait();
  });
  EXPECT_EQ(started.erase("wait"), 1U);
  EXPECT_EQ(started, at_once);
}

TEST_F(AlgorithmPhasesTest, OfARingAreItsTwoWaysAround) {
  EXPECT_THAT(PhasesOf(Algorithm::kRing, Allreduce),
              UnorderedElementsAre("allreduce", "reduce around", "pass around"));
}

TEST_F(AlgorithmPhasesTest, OfTheDirectWayAreItsTwoSteps) {
  EXPECT_THAT(PhasesOf(Algorithm::kDirect, Allreduce),
              UnorderedElementsAre("allreduce", "combine slice", "gather slices"));
}

TEST_F(AlgorithmPhasesTest, OfHalvingAndDoublingAreTheseAndWhatAnOddRankNeeds) {
  EXPECT_THAT(PhasesOf(Algorithm::kHalvingDoubling, Allreduce),
              UnorderedElementsAre("allreduce", "lend", "take in", "halve", "double"));
}

TEST_F(AlgorithmPhasesTest, OfDoublingAreItsSwapsAndWhatAnOddRankNeeds) {
  EXPECT_THAT(PhasesOf(Algorithm::kDoubling, Allreduce),
              UnorderedElementsAre("allreduce", "lend", "take in", "swap"));
}

TEST_F(AlgorithmPhasesTest, OfOneShotIsItsOnlyStep) {
  EXPECT_THAT(PhasesOf(Algorithm::kOneShot, Allreduce), UnorderedElementsAre("allreduce", "swap"));
}

TEST_F(AlgorithmPhasesTest, OfTwoLevelsAreTheseAndThoseOfWhatIsBetweenTheNodes) {
  EXPECT_THAT(PhasesOf(Algorithm::kAuto, AllreduceInTwoLevels),
              UnorderedElementsAre("allreduce", "combine in the node", "exchange between nodes",
                                   "swap", "spread in the node"));
}

TEST_F(AlgorithmPhasesTest, OfTreesAreTheWaysUpAndDown) {
  for (const Algorithm algorithm : {Algorithm::kTree, Algorithm::kDoubleTree}) {
    EXPECT_THAT(PhasesOf(algorithm, Allreduce),
                UnorderedElementsAre("allreduce", "reduce up", "pass down"))
        << NameOf(algorithm);
  }
}

TEST_F(AlgorithmPhasesTest, OfAnOrderedSumAreThoseOfItsSchedule) {
  EXPECT_THAT(
      PhasesOf(Algorithm::kDirect, SumInOrder),
      UnorderedElementsAre("ordered_sum", "exchange ownership", "add slice", "gather slices"));
  EXPECT_THAT(PhasesOf(Algorithm::kHalvingDoubling, SumInOrder),
              UnorderedElementsAre("ordered_sum", "exchange ownership", "add halves",
                                   "spread halves", "serve the idle"));
}

}  // namespace
}  // namespace ringmaster::collectives
