#include "runtime/graph/arena.h"

#include <random>

#include <gtest/gtest.h>

namespace ringmaster::graph {
namespace {

void ExpectNoLiveOverlap(const std::vector<Lifetime>& lives, const ArenaPlan& plan,
                         const Block& block = {}) {
  for (size_t a = 0; a < lives.size(); ++a) {
    EXPECT_EQ(plan.offsets[a] % 64, 0u);
    EXPECT_LE(plan.offsets[a] + lives[a].bytes, plan.in_block[a] ? block.bytes : plan.bytes);
    for (const Block::Tenant& tenant : block.tenants) {
      if (!plan.in_block[a] || lives[a].last < tenant.life.first) continue;
      EXPECT_TRUE(plan.offsets[a] + lives[a].bytes <= tenant.offset ||
                  tenant.offset + tenant.life.bytes <= plan.offsets[a])
          << "value " << a << " overlaps what has its place in the block";
    }
    for (size_t b = a + 1; b < lives.size(); ++b) {
      if (plan.in_block[a] != plan.in_block[b]) continue;
      if (lives[a].last < lives[b].first || lives[b].last < lives[a].first) continue;
      EXPECT_TRUE(plan.offsets[a] + lives[a].bytes <= plan.offsets[b] ||
                  plan.offsets[b] + lives[b].bytes <= plan.offsets[a])
          << "values " << a << " and " << b << " live together and overlap";
    }
  }
}

TEST(ArenaTest, ValuesWithDisjointLivesShareMemory) {
  const std::vector<Lifetime> lives = {{1024, 0, 1}, {1024, 2, 3}, {1024, 4, 5}};
  const ArenaPlan plan = PlanArena(lives);
  EXPECT_EQ(plan.bytes, 1024u);
  EXPECT_EQ(PlanArena(lives, false).bytes, 3072u);
}

TEST(ArenaTest, AValueReadInTheStepThatMakesAnotherDoesNotShareWithIt) {
  const std::vector<Lifetime> lives = {{64, 0, 1}, {64, 1, 2}};
  EXPECT_EQ(PlanArena(lives).bytes, 128u);
}

TEST(ArenaTest, ASmallValueFillsAGap) {
  const std::vector<Lifetime> lives = {{256, 0, 3}, {128, 0, 1}, {64, 2, 3}};
  EXPECT_EQ(PlanArena(lives).bytes, 384u);
}

TEST(ArenaTest, NothingNeedsNoMemory) {
  EXPECT_EQ(PlanArena({}).bytes, 0u);
}

TEST(ArenaTest, AValueThatDiesBeforeTheBlockIsWrittenLiesThere) {
  const Block block{.bytes = 256, .tenants = {{.offset = 0, .life = {256, 3, 9}}}};
  const std::vector<Lifetime> lives = {{256, 0, 2}, {256, 0, 3}};
  const ArenaPlan plan = PlanArena(lives, true, block);
  EXPECT_TRUE(plan.in_block[0]);
  EXPECT_FALSE(plan.in_block[1]);
  EXPECT_EQ(plan.bytes, 256u);
}

TEST(ArenaTest, WhatDiesEarlyLeavesTheBlocksBeginningToWhatDiesLate) {
  const Block block{.bytes = 256,
                    .tenants = {{.offset = 0, .life = {128, 8, 9}}, {128, {128, 4, 9}}}};
  EXPECT_EQ(PlanArena(std::vector<Lifetime>{{128, 0, 3}, {128, 1, 7}}, true, block).bytes, 0u);
}

TEST(ArenaTest, ABlockIsNotUsedWithoutReuse) {
  const Block block{.bytes = 1024};
  const ArenaPlan plan = PlanArena(std::vector<Lifetime>{{64, 0, 1}, {64, 2, 3}}, false, block);
  EXPECT_FALSE(plan.in_block[0] || plan.in_block[1]);
  EXPECT_EQ(plan.bytes, 128u);
}

TEST(ArenaTest, RandomLivesNeverOverlapAndNeverTakeMoreThanWithoutReuse) {
  constexpr unsigned kSeed = 20240611;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> lives;
    for (int i = 0; i < 40; ++i) {
      const auto first = static_cast<int32_t>(random() % 60);
      lives.push_back({random() % 5000, first, first + static_cast<int32_t>(random() % 10)});
    }
    const ArenaPlan plan = PlanArena(lives);
    ExpectNoLiveOverlap(lives, plan);
    EXPECT_LE(plan.bytes, PlanArena(lives, false).bytes);
    Block block{.bytes = 64 * 100};
    for (size_t i = 0; i < 10; ++i) {
      const auto first = static_cast<int32_t>(random() % 70);
      block.tenants.push_back({.offset = 640 * i, .life = {random() % 641, first, 70}});
    }
    ExpectNoLiveOverlap(lives, PlanArena(lives, true, block), block);
  }
}

}  // namespace
}  // namespace ringmaster::graph
