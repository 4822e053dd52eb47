#include "runtime/collectives/shard_tree.h"

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::collectives {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The expression that a plan computes, e.g. "((0+1)+2)", written by carrying the plan out on text.
std::string Expression(int shards, const std::vector<ShardRange>& nodes) {
  std::vector<std::string> text;
  for (const ShardRange& node : nodes) {
    std::vector<ShardRange> leaves;
    for (int s = node.begin; s < node.end; ++s) leaves.push_back({s, s + 1});
    if (leaves.size() == 1) {
      text.push_back(std::to_string(node.begin));
    } else {
      const int mid = SplitPoint(node);
      // A subtree has the shape of a tree over as many leaves, so its text is built by the same
      // rule.
      auto half = [&](auto&& self, int begin, int end) -> std::string {
        if (end - begin == 1) return std::to_string(begin);
        const int split = SplitPoint({begin, end});
        return "(" + self(self, begin, split) + "+" + self(self, split, end) + ")";
      };
      text.push_back("(" + half(half, node.begin, mid) + "+" + half(half, mid, node.end) + ")");
    }
  }
  size_t root = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].begin == 0) root = i;
  }
  for (const Addition& add : CombiningPlan(shards, nodes)) {
    text[add.into] = "(" + text[add.into] + "+" + text[add.from] + ")";
  }
  return text[root];
}

TEST(ShardTreeTest, SplitsAtTheLargestPowerOfTwoBelowTheLength) {
  EXPECT_EQ(SplitPoint({0, 2}), 1);
  EXPECT_EQ(SplitPoint({0, 6}), 4);
  EXPECT_EQ(SplitPoint({0, 8}), 4);
  EXPECT_EQ(SplitPoint({4, 7}), 6);
}

TEST(ShardTreeTest, SixShardsAreAddedInTheDocumentedOrder) {
  EXPECT_EQ(Expression(6, CoveringNodes(6, ShardRange{0, 6})), "(((0+1)+(2+3))+(4+5))");
}

TEST(ShardTreeTest, OwnedShardsPartitionEveryWorldEvenly) {
  for (int shards = 1; shards <= 40; ++shards) {
    for (int world = 1; world <= shards; ++world) {
      int next = 0;
      for (int rank = 0; rank < world; ++rank) {
        const ShardRange owned = OwnedShards(shards, world, rank);
        ASSERT_EQ(owned.begin, next);
        ASSERT_GE(owned.size(), shards / world);
        ASSERT_LE(owned.size(), (shards + world - 1) / world);
        next = owned.end;
      }
      ASSERT_EQ(next, shards);
    }
  }
}

TEST(ShardTreeTest, AContiguousRangeIsCoveredByItsMaximalNodes) {
  EXPECT_THAT(CoveringNodes(8, ShardRange{0, 8}), ElementsAre(ShardRange{0, 8}));
  EXPECT_THAT(CoveringNodes(8, ShardRange{2, 5}), ElementsAre(ShardRange{2, 4}, ShardRange{4, 5}));
  EXPECT_THAT(CoveringNodes(5, ShardRange{1, 5}),
              ElementsAre(ShardRange{1, 2}, ShardRange{2, 4}, ShardRange{4, 5}));
  EXPECT_THAT(CoveringNodes(5, ShardRange{3, 3}), IsEmpty());
}

TEST(ShardTreeTest, AnArbitrarySetIsCoveredByItsMaximalNodes) {
  EXPECT_THAT(CoveringNodes(8, std::vector<int>{0, 1, 3, 4, 5, 6, 7}),
              ElementsAre(ShardRange{0, 2}, ShardRange{3, 4}, ShardRange{4, 8}));
  EXPECT_THAT(CoveringNodes(6, std::vector<int>{1, 4, 5}),
              ElementsAre(ShardRange{1, 2}, ShardRange{4, 6}));
}

TEST(ShardTreeTest, AContiguousRangeNeedsFewNodes) {
  for (int begin = 0; begin < 64; ++begin) {
    for (int end = begin + 1; end <= 64; ++end) {
      ASSERT_LE(CoveringNodes(64, ShardRange{begin, end}).size(), 12u) << begin << ".." << end;
    }
  }
}

TEST(ShardTreeTest, TheMostSumsSideBySideAreThoseOfAnyBeginningOfTheRange) {
  EXPECT_EQ(MostSums(8, {0, 0}), 0u);
  EXPECT_EQ(MostSums(8, {0, 1}), 1u);
  EXPECT_EQ(MostSums(8, {0, 2}), 1u) << "the second is added to the first";
  EXPECT_EQ(MostSums(8, {0, 8}), 3u) << "of 0 to 3, of 4 and 5, and of 6";
  for (int begin = 0; begin < 24; ++begin) {
    size_t most = 0;
    for (int end = begin + 1; end <= 24; ++end) {
      most = std::max(most, CoveringNodes(24, ShardRange{begin, end}).size());
      ASSERT_EQ(MostSums(24, {begin, end}), most) << begin << ".." << end;
    }
  }
}

TEST(ShardTreeTest, EveryPartitionOfTheShardsGivesTheSameExpression) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int shards : {1, 2, 3, 5, 8, 12, 16, 31}) {
    const std::string whole = Expression(shards, {{0, shards}});
    for (int trial = 0; trial < 30; ++trial) {
      const int world = 1 + static_cast<int>(random() % 5);
      std::vector<std::vector<int>> owned(world);
      for (int s = 0; s < shards; ++s) owned[random() % world].push_back(s);
      std::vector<ShardRange> nodes;
      for (const auto& set : owned) {
        for (const ShardRange& node : CoveringNodes(shards, set)) nodes.push_back(node);
      }
      ASSERT_EQ(Expression(shards, nodes), whole) << shards << " shards over " << world;
    }
  }
}

TEST(ShardTreeDeathTest, RefusesNodesThatMissAShard) {
  const std::vector<ShardRange> nodes = {{0, 2}, {3, 4}};
  EXPECT_DEATH(CombiningPlan(4, nodes), "do not cover every shard");
}

}  // namespace
}  // namespace ringmaster::collectives
