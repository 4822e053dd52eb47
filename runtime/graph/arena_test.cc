#include "runtime/graph/arena.h"

#include <random>

#include <gtest/gtest.h>

namespace ringmaster::graph {
namespace {

void ExpectNoLiveOverlap(const std::vector<Lifetime>& lives, const ArenaPlan& plan) {
  for (size_t a = 0; a < lives.size(); ++a) {
    EXPECT_EQ(plan.offsets[a] % 64, 0u);
    EXPECT_LE(plan.offsets[a] + lives[a].bytes, plan.bytes);
    for (size_t b = a + 1; b < lives.size(); ++b) {
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
  }
}

}  // namespace
}  // namespace ringmaster::graph
