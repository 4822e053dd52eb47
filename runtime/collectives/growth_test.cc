// Latency, connections and memory of each algorithm follow the cost model from 2 to 64 ranks.
#include "runtime/collectives/testing/growth.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/collectives/reduce.h"
#include "runtime/collectives/selector.h"
#include "runtime/collectives/testing/simulated_network.h"

namespace ringmaster::collectives {
namespace {

using testing::Growth;
using testing::MapOf;
using testing::MeasureGrowth;
using testing::SimulatedNetwork;

constexpr double kFactor = 1.8;  // between prediction and simulation
constexpr int kWorlds[] = {2, 3, 4, 6, 8, 16, 24, 32, 64};

std::string Case(Algorithm algorithm, int world, size_t bytes) {
  return std::string(NameOf(algorithm)) + ", " + std::to_string(world) + " ranks, " +
         std::to_string(bytes) + " bytes";
}

Growth OfAllreduce(Algorithm algorithm, Shape shape, size_t bytes) {
  return MeasureGrowth(OperationKind::kAllreduce, algorithm, shape, bytes);
}
Growth OfOrderedSum(Algorithm algorithm, int world, size_t bytes) {
  return MeasureGrowth(OperationKind::kOrderedSum, algorithm, {world, world}, bytes);
}

int LevelsOf(int world) {
  return std::bit_width(static_cast<unsigned>(world)) - 1;
}

TEST(SimulatedNetworkTest, AMessageTakesAlphaAndItsBytes) {
  const CostModel model;
  SimulatedNetwork network(NodeMap::Apart(2), model);
  std::vector<std::byte> bytes(1000);
  const double seconds = network.Run([&](Transport& t) -> absl::Status {
    if (t.rank() == 0) {
      t.PostSend(1, bytes);
      return absl::OkStatus();
    }
    std::vector<std::byte> into(1000);
    return t.Wait(t.PostReceive(0, into));
  });
  EXPECT_DOUBLE_EQ(seconds, model.between.alpha + 1000 * model.between.beta);
}

TEST(SimulatedNetworkTest, RanksOfANodeShareItsPort) {
  const CostModel model;
  const std::vector<std::string> machines = {"a", "a", "b", "b"};
  SimulatedNetwork network{NodeMap(machines), model};
  std::vector<std::byte> bytes(1 << 20);
  const double seconds = network.Run([&](Transport& t) -> absl::Status {
    if (t.rank() < 2) {
      t.PostSend(t.rank() + 2, bytes);
      return absl::OkStatus();
    }
    std::vector<std::byte> into(bytes.size());
    return t.Wait(t.PostReceive(t.rank() - 2, into));
  });
  EXPECT_NEAR(seconds / (2.0 * (1 << 20) * model.between.beta), 1, 0.1);
}

TEST(GrowthTest, LatencyFollowsTheCostModelsCurve) {
  for (const size_t bytes : {size_t{1} << 10, size_t{32} << 10, size_t{1} << 20}) {
    for (const Algorithm algorithm : AlgorithmsOf(OperationKind::kAllreduce)) {
      if (algorithm == Algorithm::kTwoLevel) continue;
      for (const int world : kWorlds) {
        const Growth growth = OfAllreduce(algorithm, {world, world}, bytes);
        EXPECT_LT(growth.simulated, growth.predicted * kFactor) << Case(algorithm, world, bytes);
        EXPECT_GT(growth.simulated, growth.predicted / kFactor) << Case(algorithm, world, bytes);
      }
    }
  }
}

TEST(GrowthTest, TwoLevelsFollowItAndBeatTheFlatRingWithSeveralRanksANode) {
  for (const int nodes : {2, 4, 8, 16}) {
    const Shape shape{4 * nodes, nodes};
    const Growth levels = OfAllreduce(Algorithm::kTwoLevel, shape, 1 << 20);
    EXPECT_LT(levels.simulated, levels.predicted * kFactor) << nodes << " nodes";
    EXPECT_GT(levels.simulated, levels.predicted / kFactor) << nodes << " nodes";
    EXPECT_LT(OfAllreduce(Algorithm::kTwoLevel, shape, 64 << 10).simulated,
              OfAllreduce(Algorithm::kRing, shape, 64 << 10).simulated)
        << nodes << " nodes";
  }
}

// Links of one speed in the nodes and between them: one level after the other would take the sum of
// both, side by side they take no longer than the slower but for one chunk's way through all of it.
TEST(GrowthTest, TheLevelsOfATwoLevelAllreduceOverlap) {
  constexpr size_t kSegment = 64 << 10;
  constexpr LinkCost kFree;
  constexpr LinkCost kLink{1e-6, 0.3e-6, 1e-9};
  const CostModel both{.within = kLink, .between = kLink, .gamma = 0};
  for (const int nodes : {2, 4}) {
    const Shape shape{2 * nodes, nodes};
    const Selector selector(MapOf(shape), both, kSegment, Algorithm::kTwoLevel);
    const size_t chunk = TwoLevelChunkBytes(nodes, shape.per_node(), kSegment);
    const size_t all = 32 * chunk;
    const Method method = selector.For(OperationKind::kAllreduce, all);
    const auto seconds = [&](const LinkCost& within, const LinkCost& between, size_t bytes) {
      SimulatedNetwork network(selector.nodes(), {.within = within, .between = between});
      return network.Run([&](Transport& transport) -> absl::Status {
        const std::vector<float> in(bytes / sizeof(float), 1.0f);
        std::vector<float> out(in.size());
        RM_RETURN_IF_ERROR(Allreduce(transport, method, Reduction::kSum, in, out));
        return transport.Finish();
      });
    };
    const double inside = seconds(kLink, kFree, all);
    const double between = seconds(kFree, kLink, all);
    const double together = seconds(kLink, kLink, all);
    const double fill = seconds(kLink, kLink, chunk);
    EXPECT_LT(together, 1.05 * std::max(inside, between) + fill) << nodes << " nodes";
    EXPECT_LT(together, 0.7 * (inside + between)) << nodes << " nodes";
  }
}

TEST(GrowthTest, AnOrderedSumFollowsTheCostModelsCurveWhereEveryRankBringsAShard) {
  for (const size_t bytes : {size_t{1} << 10, size_t{32} << 10, size_t{1} << 20}) {
    for (const Algorithm algorithm : AlgorithmsOf(OperationKind::kOrderedSum)) {
      for (const int world : kWorlds) {
        const Growth growth = OfOrderedSum(algorithm, world, bytes);
        EXPECT_LT(growth.simulated, growth.predicted * kFactor) << Case(algorithm, world, bytes);
        EXPECT_GT(growth.simulated, growth.predicted / kFactor) << Case(algorithm, world, bytes);
      }
    }
  }
}

TEST(GrowthTest, AnOrderedSumConnectsAsTheAllreduceOfItsSchedule) {
  for (const int world : {4, 16, 64}) {
    EXPECT_EQ(OfOrderedSum(Algorithm::kHalvingDoubling, world, 4096).peers,
              static_cast<size_t>(LevelsOf(world)));
    EXPECT_EQ(OfOrderedSum(Algorithm::kDirect, world, 4096).peers, static_cast<size_t>(world - 1));
    EXPECT_EQ(OfOrderedSum(Algorithm::kOneShot, world, 4096).peers, static_cast<size_t>(world - 1));
  }
}

TEST(GrowthTest, ARankConnectsOnlyToThoseItsAlgorithmTalksTo) {
  for (const int world : {4, 16, 64}) {
    const auto levels = static_cast<size_t>(LevelsOf(world));
    const auto peers = [&](Algorithm algorithm) {
      return OfAllreduce(algorithm, {world, world}, 4096).peers;
    };
    EXPECT_EQ(peers(Algorithm::kRing), 2u);
    EXPECT_EQ(peers(Algorithm::kDoubling), levels);
    EXPECT_EQ(peers(Algorithm::kHalvingDoubling), levels);
    EXPECT_EQ(peers(Algorithm::kTree), levels);
    EXPECT_LE(peers(Algorithm::kDoubleTree), 6u);
    EXPECT_EQ(peers(Algorithm::kDirect), static_cast<size_t>(world - 1));
    EXPECT_EQ(peers(Algorithm::kOneShot), static_cast<size_t>(world - 1));
  }
}

TEST(GrowthTest, OnlyDoublingNeedsMemoryForMoreThanItsLists) {
  constexpr size_t kBytes = 1 << 20;
  for (const int world : {2, 8, 64}) {
    const auto levels = static_cast<size_t>(LevelsOf(world));
    for (const Algorithm algorithm : AlgorithmsOf(OperationKind::kAllreduce)) {
      if (algorithm == Algorithm::kTwoLevel) continue;
      const size_t scratch = OfAllreduce(algorithm, {world, world}, kBytes).scratch_bytes;
      const size_t most = algorithm == Algorithm::kDoubling ? (levels + 3) * kBytes : kBytes / 8;
      EXPECT_LT(scratch, most) << Case(algorithm, world, kBytes);
    }
  }
}

TEST(GrowthTest, AnOrderedSumHoldsASegmentForEachNodeThatWaitsForItsTurn) {
  constexpr size_t kBytes = 1 << 20, kSegment = 256 << 10, kLists = 32 << 10;
  for (const int world : {2, 8, 64}) {
    const auto scratch = [&](Algorithm algorithm) {
      return OfOrderedSum(algorithm, world, kBytes).scratch_bytes;
    };
    EXPECT_LT(scratch(Algorithm::kHalvingDoubling), kLists) << world << " ranks";
    EXPECT_LT(scratch(Algorithm::kDirect), kSegment + kLists) << world << " ranks";
    EXPECT_LT(scratch(Algorithm::kOneShot), static_cast<size_t>(LevelsOf(world)) * kSegment)
        << world << " ranks";
  }
}

}  // namespace
}  // namespace ringmaster::collectives
