#include "runtime/collectives/cost_model.h"

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/collectives/selector.h"

namespace ringmaster::collectives {
namespace {

constexpr size_t kSegmentBytes = 256 * 1024;
constexpr OperationKind kChosen[] = {OperationKind::kAllreduce, OperationKind::kReduce,
                                     OperationKind::kBroadcast, OperationKind::kOrderedSum};

double PredictAllreduce(Algorithm algorithm, size_t bytes, Shape shape) {
  return Predict(CostModel(), OperationKind::kAllreduce, algorithm, bytes, shape, kSegmentBytes);
}

TEST(CostModelTest, DoublingSendsEverythingInEachOfItsSteps) {
  const CostModel model;
  const double step = model.between.alpha + 1000 * (model.between.beta + model.gamma);
  EXPECT_DOUBLE_EQ(PredictAllreduce(Algorithm::kDoubling, 1000, {8, 8}), 3 * step);
  // Six ranks: four exchange, and two lend and get back.
  EXPECT_DOUBLE_EQ(PredictAllreduce(Algorithm::kDoubling, 1000, {6, 6}),
                   3 * step + model.between.alpha + 1000 * model.between.beta);
}

TEST(CostModelTest, ARingOfManyBytesMovesEachTwiceAndPaysForNoStep) {
  const CostModel model;
  constexpr double kBytes = 64 << 20;
  const double bytes_alone = kBytes * 3 / 4 * (2 * model.between.beta + model.gamma);
  EXPECT_NEAR(PredictAllreduce(Algorithm::kRing, 64 << 20, {4, 4}) / bytes_alone, 1, 0.01);
}

TEST(CostModelTest, TwoRanksExchangeDirectlyWhatIsLarge) {
  for (const Shape shape : {Shape{2, 1}, Shape{2, 2}}) {
    for (size_t bytes = size_t{1} << 20; bytes <= size_t{1} << 32; bytes *= 2) {
      const auto ranked = Rank(CostModel(), OperationKind::kAllreduce, bytes, shape, kSegmentBytes);
      EXPECT_EQ(ranked.front().algorithm, Algorithm::kDirect) << bytes << " bytes";
    }
  }
}

TEST(CostModelTest, TheDirectWayOfRanksThatShareMemoryWritesResultsOnce) {
  CostModel model;
  constexpr double kBytes = 64 << 20, kPart = kBytes / 4;
  const double apart = 2 * model.within.alpha + 4 * model.within.overhead +
                       3 * kPart * (2 * model.within.beta + model.gamma);
  model.within.again = 1;
  const auto direct = [&](Shape shape) {
    return Predict(model, OperationKind::kAllreduce, Algorithm::kDirect, 64 << 20, shape,
                   kSegmentBytes);
  };
  EXPECT_DOUBLE_EQ(direct({4, 1}), apart);
  const double between = direct({4, 4});
  model.within.again = 0.5;
  EXPECT_DOUBLE_EQ(direct({4, 1}), apart - kPart * model.within.beta);
  EXPECT_DOUBLE_EQ(direct({4, 4}), between) << "over a network each gets its own";
}

TEST(CostModelTest, PiecesOfTheDirectWayAreASegmentTogetherWhereRanksShareMemory) {
  CostModel model;
  constexpr size_t kSegment = 256 * 1024;
  EXPECT_EQ(DirectPieceBytes(model, {2, 1}, kSegment), kSegment / 4 * 3);
  EXPECT_EQ(DirectPieceBytes(model, {1, 1}, kSegment), kSegment / 4 * 3) << "one has no others";
  EXPECT_EQ(DirectPieceBytes(model, {4, 1}, kSegment), size_t{84} * 1024);
  EXPECT_EQ(DirectPieceBytes(model, {64, 1}, kSegment), size_t{16} * 1024) << "no less";
  EXPECT_EQ(DirectPieceBytes(model, {64, 1}, 1024), 1024U) << "nor more than a segment";
  EXPECT_EQ(DirectPieceBytes(model, {4, 2}, kSegment), kSegment) << "several nodes";
  model.within.again = 1;
  for (const Shape shape : {Shape{2, 1}, Shape{4, 1}})
    EXPECT_EQ(DirectPieceBytes(model, shape, kSegment), kSegment) << "no memory is shared";
}

TEST(SelectorTest, TwoRanksThatFallOutOfStepExchangeEverythingAtOnceBelowTwoMegabytes) {
  CostModel model;
  model.within = model.between = {15e-6, 4e-6, 0.3e-9, 60e-6};
  model.gamma = 0.05e-9;
  for (const NodeMap& nodes : {NodeMap(std::vector<std::string>{"a", "a"}), NodeMap::Apart(2)}) {
    const auto chosen = [&](size_t bytes) {
      const Selector selector(nodes, model, kSegmentBytes, Algorithm::kAuto);
      return std::pair(selector.For(OperationKind::kAllreduce, bytes).algorithm,
                       selector.For(OperationKind::kOrderedSum, bytes).algorithm);
    };
    constexpr std::pair kOneExchange(Algorithm::kDoubling, Algorithm::kOneShot);
    constexpr std::pair kHalves(Algorithm::kDirect, Algorithm::kDirect);
    model.within.turn = model.between.turn = 60e-6;
    EXPECT_EQ(chosen(512 << 10), kOneExchange);
    EXPECT_EQ(chosen(1 << 20), kOneExchange);
    EXPECT_EQ(chosen((2 << 20) - 4), kOneExchange);
    EXPECT_EQ(chosen(2 << 20), kHalves);
    model.within.turn = model.between.turn = 0;
    EXPECT_EQ(chosen(1 << 20), kHalves) << "in step";
  }
}

TEST(CostModelTest, AnOrderedSumCopiesWhatWaitsForItsTurn) {
  const CostModel model;
  constexpr size_t kBytes = 1 << 20;
  const auto kept = [&](Algorithm algorithm, Shape shape) {
    return Predict(model, OperationKind::kOrderedSum, algorithm, kBytes, shape, kSegmentBytes) -
           Predict(model, OperationKind::kAllreduce, algorithm, kBytes, shape, kSegmentBytes);
  };
  const double copied = kBytes * model.gamma;
  EXPECT_NEAR(kept(Algorithm::kDirect, {2, 1}), 0, 1e-12);
  EXPECT_NEAR(kept(Algorithm::kDirect, {4, 1}), copied / 4, 1e-12) << "one part";
  EXPECT_NEAR(kept(Algorithm::kOneShot, {4, 1}), copied, 1e-12) << "one rank's everything";
  EXPECT_NEAR(kept(Algorithm::kDirect, {8, 1}), 3 * copied / 8, 1e-12) << "three parts";
  EXPECT_NEAR(kept(Algorithm::kDirect, {4, 4}), 0, 1e-12) << "while others are on their way";
}

TEST(CostModelTest, HalvesThatFitIntoNoCacheAreCombinedByWayOfMemory) {
  CostModel model;
  model.between.beta = 0;
  const auto combining = [&](size_t bytes) {
    const double all = Predict(model, OperationKind::kAllreduce, Algorithm::kHalvingDoubling, bytes,
                               {4, 4}, kSegmentBytes);
    return (all - 4 * model.between.alpha) / (static_cast<double>(bytes) * 3 / 4 * model.gamma);
  };
  EXPECT_NEAR(combining(16 << 20), 1, 1e-6);
  EXPECT_NEAR(combining(32 << 20), 3, 1e-6);
}

TEST(SelectorTest, FourRanksOfANodeAddByHalvesWhatFitsIntoCachesWhereTheyShareNoMemory) {
  CostModel model;
  model.within = model.between = {15e-6, 4e-6, 0.4e-9};
  model.gamma = 0.04e-9;
  const NodeMap one_node(std::vector<std::string>(4, "a"));
  const auto chosen = [&](const NodeMap& nodes, size_t bytes) {
    const Selector selector(nodes, model, kSegmentBytes, Algorithm::kAuto);
    return selector.For(OperationKind::kOrderedSum, bytes).algorithm;
  };
  model.within.again = 1;
  EXPECT_EQ(chosen(one_node, 1 << 20), Algorithm::kDirect) << "fewer messages after one another";
  EXPECT_EQ(chosen(one_node, 4 << 20), Algorithm::kHalvingDoubling) << "nothing waits for its turn";
  EXPECT_EQ(chosen(one_node, (32 << 20) - 4), Algorithm::kHalvingDoubling);
  EXPECT_EQ(chosen(one_node, 32 << 20), Algorithm::kDirect) << "no half goes to memory and back";
  EXPECT_EQ(chosen(NodeMap::Apart(4), 4 << 20), Algorithm::kDirect) << "the network hides it";
  model.within.again = CostModel::kReadAgain;
  EXPECT_EQ(chosen(one_node, 4 << 20), Algorithm::kDirect) << "memory is shared";
}

TEST(SelectorTest, FourRanksOfANodeAddByHalvesUpToFourMegabytesWhereThatWasMeasuredToBeQuicker) {
  CostModel model;
  model.within = {15e-6, 4e-6, 0.3e-9};
  model.gamma = 0.04e-9;
  const NodeMap one_node(std::vector<std::string>(4, "a"));
  const auto chosen = [&](const NodeMap& nodes, OperationKind kind, size_t bytes) {
    return Selector(nodes, model, kSegmentBytes, Algorithm::kAuto).For(kind, bytes).algorithm;
  };
  for (const OperationKind kind : {OperationKind::kAllreduce, OperationKind::kOrderedSum}) {
    EXPECT_NE(chosen(one_node, kind, 1 << 20), Algorithm::kHalvingDoubling);
    model.within.halves = -100e-6;
    EXPECT_EQ(chosen(one_node, kind, 512 << 10), Algorithm::kHalvingDoubling);
    EXPECT_EQ(chosen(one_node, kind, 1 << 20), Algorithm::kHalvingDoubling);
    EXPECT_EQ(chosen(one_node, kind, 4 << 20), Algorithm::kHalvingDoubling);
    EXPECT_NE(chosen(NodeMap::Apart(4), kind, 1 << 20), Algorithm::kHalvingDoubling);
    model.within.halves = 100e-6;
    EXPECT_NE(chosen(one_node, kind, 4 << 20), Algorithm::kHalvingDoubling);
    model.within.halves = 0;
  }
  model.within.halves = -100e-6;
  EXPECT_EQ(chosen(one_node, OperationKind::kAllreduce, 8 << 20), Algorithm::kRing);
}

TEST(CostModelTest, WhatHalvesCostRanksOfANodeIsNothingInAGroupThatFolds) {
  CostModel slow;
  slow.within.halves = 1;
  for (const OperationKind kind : {OperationKind::kAllreduce, OperationKind::kOrderedSum}) {
    const auto predicted = [&](const CostModel& model, int world) {
      return Predict(model, kind, Algorithm::kHalvingDoubling, 1 << 20, {world, 1}, kSegmentBytes);
    };
    EXPECT_NEAR(predicted(slow, 4) - predicted(CostModel(), 4), 1, 1e-9);
    EXPECT_EQ(predicted(slow, 3), predicted(CostModel(), 3)) << OperationKindName(kind);
  }
}

TEST(CostModelTest, WhatASecondExchangeCostsTwoRanksIsNothingAmongMore) {
  CostModel slow;
  slow.within.turn = slow.between.turn = 1;
  for (const OperationKind kind : {OperationKind::kAllreduce, OperationKind::kOrderedSum}) {
    for (const Algorithm algorithm : AlgorithmsOf(kind)) {
      EXPECT_EQ(Predict(slow, kind, algorithm, 1 << 20, {4, 4}, kSegmentBytes),
                Predict(CostModel(), kind, algorithm, 1 << 20, {4, 4}, kSegmentBytes))
          << OperationKindName(kind) << " by " << NameOf(algorithm);
    }
  }
}

TEST(CostModelTest, MoreBytesNeverCostLess) {
  for (const OperationKind kind : kChosen) {
    for (const Algorithm algorithm : AlgorithmsOf(kind)) {
      for (const Shape shape : {Shape{2, 2}, Shape{5, 5}, Shape{8, 1}, Shape{8, 4}, Shape{64, 8}}) {
        double before = 0;
        for (size_t bytes = 1; bytes <= size_t{1} << 32; bytes *= 2) {
          const double now = Predict(CostModel(), kind, algorithm, bytes, shape, kSegmentBytes);
          EXPECT_GE(now, before) << OperationKindName(kind) << " by " << NameOf(algorithm) << ", "
                                 << bytes << " bytes, " << shape.world << " ranks";
          before = now;
        }
      }
    }
  }
}

TEST(CostModelTest, EveryOperationHasAnAlgorithmAtEverySizeAndShape) {
  for (const OperationKind kind : kChosen) {
    if (AlgorithmsOf(kind).empty()) continue;
    for (int world = 2; world <= 130; ++world) {
      for (int nodes = 1; nodes <= world; nodes += 1 + world / 7) {
        const auto ranked = Rank(CostModel(), kind, 12345, {world, nodes}, kSegmentBytes);
        ASSERT_FALSE(ranked.empty());
        EXPECT_TRUE(std::isfinite(ranked.front().seconds));
        EXPECT_GT(ranked.front().seconds, 0);
      }
    }
  }
}

TEST(CostModelTest, OneShotSendsEverythingToEverybodyAtOnce) {
  const CostModel model;
  const LinkCost link = model.between;
  EXPECT_DOUBLE_EQ(PredictAllreduce(Algorithm::kOneShot, 1000, {4, 4}),
                   link.alpha + 2 * link.overhead + 3000 * (link.beta + model.gamma));
}

TEST(SelectorTest, TakesFewStepsForWhatIsSmallAndFewBytesForWhatIsLarge) {
  const Selector selector(NodeMap::Apart(8), CostModel(), kSegmentBytes, Algorithm::kAuto);
  EXPECT_EQ(selector.For(OperationKind::kAllreduce, 4).algorithm, Algorithm::kOneShot);
  EXPECT_EQ(selector.For(OperationKind::kAllreduce, 16 << 10).algorithm, Algorithm::kDoubling);
  EXPECT_EQ(selector.For(OperationKind::kAllreduce, 256 << 20).algorithm, Algorithm::kRing);
  EXPECT_EQ(selector.For(OperationKind::kBarrier, 0).algorithm, Algorithm::kAuto);
}

TEST(SelectorTest, TakesTheAlgorithmThatRanksFirst) {
  for (const int world : {2, 3, 8, 64}) {
    const Selector selector(NodeMap::Apart(world), CostModel(), kSegmentBytes, Algorithm::kAuto);
    for (const OperationKind kind : kChosen) {
      if (AlgorithmsOf(kind).empty()) continue;
      for (size_t bytes = 1; bytes <= size_t{1} << 32; bytes *= 2) {
        const auto ranked = Rank(CostModel(), kind, bytes, {world, world}, kSegmentBytes);
        EXPECT_EQ(selector.For(kind, bytes).algorithm, ranked.front().algorithm)
            << OperationKindName(kind) << ", " << bytes << " bytes, " << world << " ranks";
      }
    }
  }
}

TEST(SelectorTest, TakesTheForcedAlgorithmAtEverySizeWhereTheOperationHasIt) {
  const Selector selector(NodeMap::Apart(4), CostModel(), kSegmentBytes, Algorithm::kRing);
  for (const size_t bytes : {size_t{0}, size_t{4}, size_t{1} << 30}) {
    EXPECT_EQ(selector.For(OperationKind::kAllreduce, bytes).algorithm, Algorithm::kRing);
    EXPECT_NE(selector.For(OperationKind::kOrderedSum, bytes).algorithm, Algorithm::kRing);
  }
}

TEST(AlgorithmTest, NamesAreReadBack) {
  std::set<std::string> names;
  for (size_t i = 0; i < kAlgorithms; ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    names.insert(NameOf(algorithm));
    EXPECT_EQ(ParseAlgorithm(NameOf(algorithm)).value(), algorithm);
  }
  EXPECT_EQ(names.size(), kAlgorithms);
  const absl::Status wrong = ParseAlgorithm("rings").status();
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(Message(wrong).find("'rings' is no algorithm; one of auto, direct"), std::string::npos);
}

TEST(NodeMapTest, RanksOfOneMachineAreANode) {
  const NodeMap map(std::vector<std::string>{"a", "b", "", "a", "b", ""});
  EXPECT_EQ(map.nodes(), 4);
  EXPECT_EQ(map.node_of(3), map.node_of(0));
  EXPECT_EQ(map.node_of(4), map.node_of(1));
  EXPECT_NE(map.node_of(2), map.node_of(5));
  EXPECT_EQ(std::vector<int>(map.ranks_of(1).begin(), map.ranks_of(1).end()),
            (std::vector<int>{1, 4}));
  EXPECT_EQ(map.least_per_node(), 1);
}

}  // namespace
}  // namespace ringmaster::collectives
