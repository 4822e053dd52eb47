#include "runtime/collectives/algorithms/sum_schedule.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ringmaster::collectives {
namespace {

using PlaceKind = SumPlace::Kind;
using StepKind = SumStep::Kind;

// Who has which shards, drawn; and what follows for a sum along the tree.
struct Drawn {
  std::vector<SumSource> sources;
  std::vector<ShardRange> nodes;  // by source
  std::vector<Addition> plan;
};

Drawn Draw(int shards, int world, std::mt19937& random) {
  std::vector<std::vector<int>> owned(static_cast<size_t>(world));
  for (int shard = 0; shard < shards; ++shard) owned[random() % owned.size()].push_back(shard);
  Drawn drawn;
  for (int rank = 0; rank < world; ++rank) {
    int index = 0;
    for (const ShardRange& node : CoveringNodes(shards, owned[static_cast<size_t>(rank)])) {
      drawn.nodes.push_back(node);
      drawn.sources.push_back({rank, index++});
    }
  }
  drawn.plan = CombiningPlan(shards, drawn.nodes);
  return drawn;
}

// A sum of two has the same bits in either order, so it is written in one.
std::string Sum(const std::string& a, const std::string& b) {
  return a < b ? "(" + a + "+" + b + ")" : "(" + b + "+" + a + ")";
}

// Carries steps out on what the sums are of, written down: "(0+1)".
class Player {
 public:
  Player(const Drawn& drawn, int me, const SumSchedule& schedule)
      : scratch_(static_cast<size_t>(schedule.scratch)) {
    for (size_t i = 0; i < drawn.sources.size(); ++i) {
      const auto& [rank, index] = drawn.sources[i];
      (rank == me ? own_ : messages_[rank]).push_back(std::to_string(i));
    }
    for (const SumStep& step : schedule.steps) Play(step);
  }

  const std::string& result() const { return *result_; }
  bool HasReceivedAll() const {
    return std::all_of(messages_.begin(), messages_.end(),
                       [](const auto& one) { return one.second.empty(); });
  }

 private:
  void Play(const SumStep& step) {
    if (step.kind == StepKind::kCopy) {
      At(step.into) = Of(step.left);
    } else if (step.kind == StepKind::kReceive) {
      At(step.into) = Next(step.peer);
    } else {
      const std::string left =
          step.kind == StepKind::kCombineLeft ? Next(step.peer) : Of(step.left);
      const std::string right =
          step.kind == StepKind::kCombineRight ? Next(step.peer) : Of(step.right);
      const std::string sum = Sum(left, right);
      At(step.into) = step.outer ? Sum(Of(*step.outer), sum) : sum;
    }
  }

  std::optional<std::string>& At(const SumPlace& place) {
    EXPECT_NE(place.kind, PlaceKind::kOwn) << "a vector of the rank's own is written";
    return place.kind == PlaceKind::kScratch ? scratch_.at(static_cast<size_t>(place.index))
                                             : result_;
  }
  std::string Of(const SumPlace& place) {
    if (place.kind == PlaceKind::kOwn) return own_.at(static_cast<size_t>(place.index));
    return At(place).value_or("nothing");
  }
  std::string Next(int peer) {
    std::deque<std::string>& queue = messages_[peer];
    if (queue.empty()) return "no message";
    const std::string next = queue.front();
    queue.pop_front();
    return next;
  }

  std::deque<std::string> own_;
  std::map<int, std::deque<std::string>> messages_;  // by rank, in the order in which they come
  std::optional<std::string> result_;
  std::vector<std::optional<std::string>> scratch_;
};

std::string Planned(const Drawn& drawn) {
  std::vector<std::string> sums;
  for (size_t i = 0; i < drawn.sources.size(); ++i) sums.push_back(std::to_string(i));
  if (drawn.plan.empty()) return sums[0];
  for (const auto& [into, from] : drawn.plan)
    sums[static_cast<size_t>(into)] =
        Sum(sums[static_cast<size_t>(into)], sums[static_cast<size_t>(from)]);
  return sums[static_cast<size_t>(drawn.plan.back().into)];
}

TEST(SumScheduleTest, AddsWhatIsPlannedWhoeverHasWhichShards) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 2000; ++trial) {
    const int shards = 1 + static_cast<int>(random() % 24);
    const int world = 1 + static_cast<int>(random() % 6);
    const Drawn drawn = Draw(shards, world, random);
    for (int me = 0; me < world; ++me) {
      for (const bool combines : {true, false}) {
        const SumSchedule schedule = ScheduleOf(drawn.sources, drawn.plan, me, combines);
        const Player player(drawn, me, schedule);
        ASSERT_EQ(player.result(), Planned(drawn)) << "rank " << me << " of " << world;
        ASSERT_TRUE(player.HasReceivedAll()) << "rank " << me << " of " << world;
      }
    }
  }
}

// Rank r has shards [2r, 2r + 2) of 8.
Drawn Aligned() {
  Drawn drawn;
  for (int rank = 0; rank < 4; ++rank) {
    drawn.sources.push_back({rank, 0});
    drawn.nodes.push_back({2 * rank, 2 * rank + 2});
  }
  drawn.plan = CombiningPlan(8, drawn.nodes);
  return drawn;
}

TEST(SumScheduleTest, KeepsOneMessageOfFourAlignedRanks) {
  const Drawn drawn = Aligned();
  for (int me = 0; me < 4; ++me) {
    const SumSchedule schedule = ScheduleOf(drawn.sources, drawn.plan, me, true);
    EXPECT_EQ(schedule.scratch, 1);
    EXPECT_EQ(std::count_if(schedule.steps.begin(), schedule.steps.end(),
                            [](const SumStep& step) { return step.kind == StepKind::kReceive; }),
              1);
  }
}

TEST(SumScheduleTest, AddsBothPairsOfFourAlignedRanksAsTheLastMessageArrives) {
  const Drawn drawn = Aligned();
  for (int me = 0; me < 4; ++me) {
    const SumSchedule schedule = ScheduleOf(drawn.sources, drawn.plan, me, true);
    ASSERT_EQ(schedule.steps.size(), 3u);  // a message each
    EXPECT_TRUE(schedule.steps.back().outer.has_value());
    EXPECT_EQ(schedule.steps.back().into, SumPlace());
  }
}

// What one rank has on both sides of the other's vector is more than the two swap.
TEST(SumScheduleTest, AddsTheOwnVectorsAroundAMessageInOneStep) {
  Drawn drawn;
  drawn.sources = {{0, 0}, {0, 1}, {1, 0}};
  drawn.plan = {{0, 2}, {0, 1}};
  const SumSchedule schedule = ScheduleOf(drawn.sources, drawn.plan, 0, true);
  ASSERT_EQ(schedule.steps.size(), 1u);
  EXPECT_EQ(schedule.steps[0].outer, (SumPlace{PlaceKind::kOwn, 1}));
}

TEST(SumScheduleTest, NeedsNoMemoryBetweenTwoRanks) {
  Drawn drawn;
  drawn.sources = {{0, 0}, {1, 0}};
  drawn.plan = {{0, 1}};
  const SumSchedule left = ScheduleOf(drawn.sources, drawn.plan, 0, true);
  const SumSchedule right = ScheduleOf(drawn.sources, drawn.plan, 1, true);
  ASSERT_EQ(left.steps.size(), 1u);
  ASSERT_EQ(right.steps.size(), 1u);
  EXPECT_EQ(left.steps[0].kind, StepKind::kCombineRight);
  EXPECT_EQ(right.steps[0].kind, StepKind::kCombineLeft);
  EXPECT_EQ(left.scratch + right.scratch, 0);
}

}  // namespace
}  // namespace ringmaster::collectives
