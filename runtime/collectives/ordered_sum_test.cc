#include "runtime/collectives/ordered_sum.h"

#include <algorithm>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives {
namespace {

using testing::Group;
using ::testing::HasSubstr;

constexpr size_t kElements = 1003;
constexpr size_t kManyElements = 5003;
constexpr Algorithm kSchedules[] = {Algorithm::kDirect, Algorithm::kHalvingDoubling,
                                    Algorithm::kOneShot};

// Values whose sums round, of all magnitudes, with a few of the special ones.
std::vector<std::vector<float>> RandomShards(int shards, size_t elements, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> values(shards, std::vector<float>(elements));
  for (auto& shard : values) {
    for (float& value : shard) {
      value = std::ldexp(normal(random), static_cast<int>(random() % 40) - 20);
      const unsigned special = random() % 64;
      if (special == 0) value = -0.0f;
      if (special == 1) value = std::numeric_limits<float>::infinity();
      if (special == 2) value = -std::numeric_limits<float>::infinity();
      if (special == 3)
        value = std::bit_cast<float>(0x7fc00000u | (static_cast<uint32_t>(random()) & 0x803fffffu));
    }
  }
  return values;
}

std::vector<uint32_t> Bits(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  if (!values.empty()) std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

// The definition, written out: no communicator and no buffers.
std::vector<float> TreeSum(const std::vector<std::vector<float>>& shards, ShardRange node) {
  if (node.size() == 1) return shards[node.begin];
  const int mid = SplitPoint(node);
  std::vector<float> left = TreeSum(shards, {node.begin, mid});
  const std::vector<float> right = TreeSum(shards, {mid, node.end});
  for (size_t i = 0; i < left.size(); ++i) {
    left[i] = left[i] + right[i];
    if (std::isnan(left[i])) left[i] = std::bit_cast<float>(0x7fc00000u);
  }
  return left;
}

std::vector<int> Shards(ShardRange range) {
  std::vector<int> shards;
  for (int s = range.begin; s < range.end; ++s) shards.push_back(s);
  return shards;
}

// What every rank gets when rank r has the shards owned[r]; the same a second time, when all know
// who has what.
std::vector<std::vector<float>> ReduceAcross(Group& group,
                                             const std::vector<std::vector<float>>& shards,
                                             const std::vector<std::vector<int>>& owned,
                                             SumOrder order = SumOrder::kTree) {
  std::vector<std::vector<float>> results(owned.size());
  group.Run([&](Communicator& comm) {
    OrderedSum<float> sum(static_cast<int>(shards.size()), shards[0].size(), order);
    for (const int shard : owned[comm.rank()]) ASSERT_TRUE(sum.Add(shard, shards[shard]).ok());
    std::vector<float>& out = results[comm.rank()];
    out.assign(shards[0].size(), -1.0f);
    const absl::Status status = sum.Reduce(comm, out, "gradient");
    ASSERT_TRUE(status.ok()) << status;
    std::vector<float> again(out.size(), -1.0f);
    const absl::Status second = sum.Reduce(comm, again, "gradient");
    ASSERT_TRUE(second.ok()) << second;
    ASSERT_EQ(Bits(again), Bits(out));
  });
  return results;
}

std::vector<std::vector<int>> DefaultOwners(int shards, int world) {
  std::vector<std::vector<int>> owned;
  for (int rank = 0; rank < world; ++rank)
    owned.push_back(Shards(OwnedShards(shards, world, rank)));
  return owned;
}

void ExpectTreeSum(const std::vector<std::vector<float>>& shards, const std::vector<float>& got) {
  EXPECT_EQ(Bits(got), Bits(TreeSum(shards, {0, static_cast<int>(shards.size())})));
}

class OrderedSumBitsTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Shards, OrderedSumBitsTest, ::testing::Range(1, 17));

TEST_P(OrderedSumBitsTest, AreTheTreesAtEveryWorldSize) {
  const int shard_count = GetParam();
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const size_t elements = shard_count % 2 == 0 ? kElements : kManyElements;
  const auto shards = RandomShards(shard_count, elements, seed);
  std::vector<uint32_t> first;
  for (int world = 1; world <= shard_count; ++world) {
    Group group(world,
                testing::kAllWires[static_cast<size_t>(world) % std::size(testing::kAllWires)]);
    group.options.segment_bytes = 256;
    for (const Algorithm schedule : kSchedules) {
      SCOPED_TRACE("world " + std::to_string(world) + ", " + NameOf(schedule));
      group.options.algorithm = schedule;
      for (const auto& result : ReduceAcross(group, shards, DefaultOwners(shard_count, world))) {
        ExpectTreeSum(shards, result);
        if (first.empty()) first = Bits(result);
        ASSERT_EQ(Bits(result), first);
      }
    }
  }
}

// More shards than ranks, and so few that ranks have none.
TEST(OrderedSumManyRanksTest, BitsAreTheTreesAtWorldsOf24And32) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const int shard_count : {20, 45}) {
    const auto shards = RandomShards(shard_count, kElements, seed);
    for (const int world : {24, 32}) {
      Group group(world);
      group.options.segment_bytes = 1024;
      for (const Algorithm schedule : kSchedules) {
        SCOPED_TRACE(std::to_string(shard_count) + " shards, world " + std::to_string(world) +
                     ", " + NameOf(schedule));
        group.options.algorithm = schedule;
        std::vector<std::vector<int>> owned(static_cast<size_t>(world));
        for (int shard = 0; shard < shard_count; ++shard)
          owned[static_cast<size_t>(shard * world / shard_count)].push_back(shard);
        const auto results = ReduceAcross(group, shards, owned);
        ExpectTreeSum(shards, results[0]);
        for (const auto& result : results) ASSERT_EQ(Bits(result), Bits(results[0]));
      }
    }
  }
}

TEST_P(OrderedSumBitsTest, DoNotDependOnWhoOwnsWhat) {
  const int shard_count = GetParam();
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto shards = RandomShards(shard_count, kElements, seed);
  Group alone(1);
  const std::vector<uint32_t> want =
      Bits(ReduceAcross(alone, shards, DefaultOwners(shard_count, 1))[0]);
  Group group(4);
  for (int trial = 0; trial < 10; ++trial) {
    std::vector<std::vector<int>> owned(4);
    for (int shard = 0; shard < shard_count; ++shard) owned[random() % 4].push_back(shard);
    for (auto& set : owned) std::shuffle(set.begin(), set.end(), random);
    group.options.algorithm = kSchedules[static_cast<size_t>(trial) % std::size(kSchedules)];
    for (const auto& result : ReduceAcross(group, shards, owned)) ASSERT_EQ(Bits(result), want);
  }
}

TEST(OrderedSumTest, ReachesRanksWithoutShardsWhereTwoOthersHaveOneEach) {
  for (const size_t elements : {size_t{0}, size_t{1}, size_t{3000}, kManyElements}) {
    const auto shards = RandomShards(2, elements, 1);
    Group group(4);
    for (const Algorithm schedule : kSchedules) {
      group.options.algorithm = schedule;
      for (const SumOrder order : {SumOrder::kTree, SumOrder::kByRank}) {
        for (const auto& result : ReduceAcross(group, shards, {{}, {0}, {}, {1}}, order))
          ExpectTreeSum(shards, result);
      }
    }
  }
}

TEST(OrderedSumTest, IsTheTreesWhereTheSecondOfTwoRanksHasTheFirstShard) {
  for (const size_t elements : {size_t{0}, size_t{1}, kElements, kManyElements}) {
    const auto shards = RandomShards(2, elements, 1);
    for (const auto wires : testing::kAllWires) {
      Group group(2, wires);
      for (const Algorithm schedule : kSchedules) {
        group.options.algorithm = schedule;
        for (const auto& result : ReduceAcross(group, shards, {{1}, {0}}))
          ExpectTreeSum(shards, result);
      }
    }
  }
}

TEST(OrderedSumTest, WorksOnVectorsShorterThanTheWorld) {
  for (const size_t elements : {0, 1, 2, 3}) {
    const auto shards = RandomShards(5, elements, 1);
    Group group(5);
    for (const Algorithm schedule : kSchedules) {
      group.options.algorithm = schedule;
      for (const auto& result : ReduceAcross(group, shards, DefaultOwners(5, 5)))
        ExpectTreeSum(shards, result);
    }
  }
}

TEST(OrderedSumTest, KeepsMinusZero) {
  const std::vector<std::vector<float>> shards(5, std::vector<float>(9, -0.0f));
  Group group(3);
  for (const auto& result : ReduceAcross(group, shards, DefaultOwners(5, 3))) {
    EXPECT_EQ(Bits(result), std::vector<uint32_t>(9, 0x80000000u));
  }
}

TEST(OrderedSumTest, ByRankOrderChangesTheBitsWithTheWorld) {
  const auto shards = RandomShards(8, kElements, 7);
  Group one(1);
  Group four(4);
  const auto tree_one = ReduceAcross(one, shards, DefaultOwners(8, 1));
  const auto rank_one = ReduceAcross(one, shards, DefaultOwners(8, 1), SumOrder::kByRank);
  const auto rank_four = ReduceAcross(four, shards, DefaultOwners(8, 4), SumOrder::kByRank);
  EXPECT_NE(Bits(rank_one[0]), Bits(rank_four[0]));
  EXPECT_NE(Bits(rank_one[0]), Bits(tree_one[0]));
  EXPECT_EQ(Bits(rank_four[0]), Bits(rank_four[3]));
}

TEST(OrderedSumTest, DoublesAreSummedInTheSameOrder) {
  std::vector<uint64_t> first;
  for (const int world : {1, 3, 5}) {
    Group group(world);
    group.Run([&](Communicator& comm) {
      OrderedSum<double> sum(5, 2);
      const ShardRange owned = OwnedShards(5, world, comm.rank());
      for (int s = owned.begin; s < owned.end; ++s) {
        const std::vector<double> values = {1.0 / (s + 3), std::ldexp(1.0, -17 * s)};
        ASSERT_TRUE(sum.Add(s, values).ok());
      }
      std::vector<double> out(2);
      ASSERT_TRUE(sum.Reduce(comm, out, "loss").ok());
      if (comm.rank() != 0) return;
      const std::vector<uint64_t> bits = {std::bit_cast<uint64_t>(out[0]),
                                          std::bit_cast<uint64_t>(out[1])};
      if (first.empty()) first = bits;
      EXPECT_EQ(bits, first);
    });
  }
}

TEST(OrderedSumTest, HoldsLogarithmicallyManyBuffers) {
  const std::vector<float> values(4, 1.0f);
  OrderedSum<float> whole(64, 4);
  size_t most = 0;
  for (int s = 0; s < 64; ++s) {
    ASSERT_TRUE(whole.Add(s, values).ok());
    most = std::max(most, whole.buffers_in_use());
  }
  EXPECT_EQ(most, 6u);
  EXPECT_EQ(whole.buffers_in_use(), 1u);
  OrderedSum<float> part(64, 4);
  most = 0;
  for (int s = 1; s < 63; ++s) {
    ASSERT_TRUE(part.Add(s, values).ok());
    most = std::max(most, part.buffers_in_use());
  }
  EXPECT_LE(most, 12u);
}

TEST(OrderedSumTest, CountsARingsBytesForAlignedRangesAndInOneShotEverythingForEachPeer) {
  const auto shards = RandomShards(8, 4000, 3);
  Group group(4);
  for (const Algorithm schedule : kSchedules) {
    group.options.algorithm = schedule;
    group.Run([&](Communicator& comm) {
      OrderedSum<float> sum(8, 4000);
      const ShardRange owned = OwnedShards(8, 4, comm.rank());
      for (int s = owned.begin; s < owned.end; ++s) ASSERT_TRUE(sum.Add(s, shards[s]).ok());
      std::vector<float> out(4000);
      ASSERT_TRUE(sum.Reduce(comm, out, "gradient").ok());
      const uint64_t all = 4000 * sizeof(float);
      const uint64_t bytes = schedule == Algorithm::kOneShot ? 3 * all : 2 * all * 3 / 4;
      EXPECT_EQ(comm.stats().of(OperationKind::kOrderedSum).bytes_sent,
                bytes + 3);  // and the ownership, a byte a rank
      // Which they know from then on.
      ASSERT_TRUE(sum.Reduce(comm, out, "gradient").ok());
      EXPECT_EQ(comm.stats().of(OperationKind::kOrderedSum).bytes_sent, 2 * bytes + 3);
    });
  }
}

TEST(OrderedSumTest, NamesAShardThatIsMissingOrThereTwice) {
  Group group(2);
  const std::vector<float> values(3, 1.0f);
  for (const int trial : {0, 1, 2, 3, 4, 5}) {
    const bool twice = trial % 2 == 1;
    group.options.algorithm = kSchedules[trial / 2];
    group.Run([&](Communicator& comm) {
      OrderedSum<float> sum(3, 3);
      ASSERT_TRUE(sum.Add(0 + comm.rank() * 2, values).ok());
      if (twice) {
        ASSERT_TRUE(sum.Add(1, values).ok());
      }
      std::vector<float> out(3);
      const absl::Status status = sum.Reduce(comm, out, "gradient");
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(Message(status), HasSubstr(twice ? "shard 1 was added by rank 0 and by rank 1"
                                                   : "shard 1 was added by no rank"));
    });
  }
}

TEST(OrderedSumTest, RefusesAShardTwiceOrOutOfRangeOrOfWrongLength) {
  OrderedSum<float> sum(2, 3);
  const std::vector<float> three(3);
  EXPECT_TRUE(sum.Add(1, three).ok());
  EXPECT_EQ(sum.Add(1, three).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sum.Add(2, three).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sum.Add(-1, three).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sum.Add(0, std::span(three).first(2)).code(), absl::StatusCode::kInvalidArgument);
}

TEST(OrderedSumTest, AFailedReduceKeepsTheContributionForTheNextRound) {
  const auto shards = RandomShards(4, kElements, 11);
  Group group(2);
  OrderedSum<float> sums[] = {{4, kElements}, {4, kElements}};
  for (int s = 0; s < 4; ++s) ASSERT_TRUE(sums[s / 2].Add(s, shards[s]).ok());
  group.Run([&](Communicator& comm) {
    if (comm.rank() == 1) return;  // leaves without reducing
    std::vector<float> out(kElements);
    EXPECT_FALSE(sums[0].Reduce(comm, out, "gradient").ok());
  });
  // Rank 1 is lost; rank 0 computes its shards too and goes on alone.
  ASSERT_TRUE(sums[0].Add(2, shards[2]).ok());
  ASSERT_TRUE(sums[0].Add(3, shards[3]).ok());
  group.options.members.resize(1);
  group.Run([&](Communicator& comm) {
    std::vector<float> out(kElements);
    ASSERT_TRUE(sums[0].Reduce(comm, out, "gradient").ok());
    ExpectTreeSum(shards, out);
  });
}

TEST(OrderedSumTest, IsTheSameWhenShardsChangeHandsBetweenSteps) {
  constexpr int kShards = 6;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<std::vector<int>> owner_of(8, std::vector<int>(kShards));
  for (auto& owners : owner_of) {
    for (int& owner : owners) owner = static_cast<int>(random() % 3);
  }
  const auto shards = RandomShards(kShards, kManyElements, seed);
  Group group(3);
  group.options.algorithm = Algorithm::kDirect;
  group.Run([&](Communicator& comm) {
    OrderedSum<float> sum(kShards, kManyElements);
    for (const auto& owners : owner_of) {
      for (int s = 0; s < kShards; ++s) {
        if (owners[static_cast<size_t>(s)] != comm.rank()) continue;
        ASSERT_TRUE(sum.Add(s, shards[s]).ok());
      }
      std::vector<float> out(kManyElements);
      ASSERT_TRUE(sum.Reduce(comm, out, "gradient").ok()) << comm.status();
      ExpectTreeSum(shards, out);
      sum.Clear();
      sum.ForgetOwners();
    }
  });
}

TEST(OrderedSumTest, NamesTheShardThatHasChangedHandsUnasked) {
  Group group(2);
  const std::vector<float> values(3, 1.0f);
  std::barrier everybody(2);  // what fails the second sum may overtake the first
  for (const Algorithm schedule : kSchedules) {
    group.options.algorithm = schedule;
    group.Run([&](Communicator& comm) {
      OrderedSum<float> sum(2, 3);
      std::vector<float> out(3);
      ASSERT_TRUE(sum.Add(comm.rank(), values).ok());
      EXPECT_TRUE(sum.Reduce(comm, out, "gradient").ok()) << comm.status();
      everybody.arrive_and_wait();
      sum.Clear();
      for (int s = 0; s < 2; ++s) {
        if (comm.rank() == 1) {
          ASSERT_TRUE(sum.Add(s, values).ok());
        }
      }
      const absl::Status status = sum.Reduce(comm, out, "gradient");
      EXPECT_FALSE(status.ok());
      EXPECT_THAT(Message(status),
                  ::testing::AnyOf(HasSubstr("shard 0 was added by rank 0 in the sum before, and "
                                             "is not now"),
                                   HasSubstr("shard 0 was not added by rank 1 in the sum before, "
                                             "and is now")));
    });
  }
}

TEST(OrderedSumTest, RanksOfWhichOneForgetsTheOwnersHaveDiverged) {
  Group group(2);
  std::barrier everybody(2);
  group.Run([&](Communicator& comm) {
    OrderedSum<float> sum(2, 3);
    std::vector<float> out(3);
    ASSERT_TRUE(sum.Add(comm.rank(), std::vector<float>(3, 1.0f)).ok());
    EXPECT_TRUE(sum.Reduce(comm, out, "gradient").ok()) << comm.status();
    everybody.arrive_and_wait();
    if (comm.rank() == 0) sum.ForgetOwners();
    const absl::Status status = sum.Reduce(comm, out, "gradient");
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(Message(status), HasSubstr("2 shards by one-shot, of the same ranks"));
  });
}

TEST(OrderedSumTest, IsToldTheOwnersAgainInEachGroup) {
  constexpr int kShards = 5;
  const auto shards = RandomShards(kShards, kElements, 17);
  Group group(3);
  group.Run([&](Communicator& comm) {
    const auto pair = comm.Split(comm.rank() < 2 ? 0 : -1, 0, "pair");
    ASSERT_TRUE(pair.ok()) << pair.status();
    OrderedSum<float> sum(kShards, kElements);
    std::vector<float> out(kElements);
    for (int step = 0; step < 3; ++step) {
      for (Communicator* const over : {&comm, pair->get()}) {
        if (over == nullptr) continue;
        const ShardRange owned = OwnedShards(kShards, over->world(), over->rank());
        for (int s = owned.begin; s < owned.end; ++s) ASSERT_TRUE(sum.Add(s, shards[s]).ok());
        ASSERT_TRUE(sum.Reduce(*over, out, "gradient").ok()) << over->status();
        ExpectTreeSum(shards, out);
        sum.Clear();
      }
    }
  });
}

TEST(OrderedSumTest, ClearStartsTheNextStepAnew) {
  Group group(2);
  group.Run([&](Communicator& comm) {
    OrderedSum<float> sum(3, 100);
    for (int step = 1; step <= 5; ++step) {
      const std::vector<float> values(100, static_cast<float>(step));
      const ShardRange owned = OwnedShards(3, 2, comm.rank());
      for (int s = owned.begin; s < owned.end; ++s) ASSERT_TRUE(sum.Add(s, values).ok());
      std::vector<float> out(100);
      ASSERT_TRUE(sum.Reduce(comm, out, "gradient").ok()) << comm.status();
      ASSERT_EQ(out, std::vector<float>(100, 3.0f * static_cast<float>(step)));
      sum.Clear();
    }
  });
}

}  // namespace
}  // namespace ringmaster::collectives
