// The ordered sum of every type that it has, by both of its schedules, at many worlds and lengths:
// the same bytes as a tree of plain additions.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/collectives/add.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/compression/sixteen_bits.h"
#include "runtime/collectives/ordered_sum.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives {
namespace {

using testing::Group;
using testing::Wires;

constexpr int kShards = 9;
// Numbers; of blocks none, one, and four of which one is half full.
constexpr size_t kSizes[] = {0, 1, 7, 3 * HalfBlock::kValues + 77};
constexpr size_t kShortSegmentBytes = 1100;  // two blocks
constexpr size_t kSegmentBytes = 256 * 1024;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kMany[] = {50'000};
#else
constexpr size_t kMany[] = {1'000'000};
#endif

// Values of all magnitudes, whose sums round.
template <typename T>
std::vector<T> RandomShard(size_t size, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& value : values)
    value = std::ldexp(normal(random), static_cast<int>(random() % 30) - 15);
  if constexpr (std::is_floating_point_v<T>) {
    return std::vector<T>(values.begin(), values.end());
  } else {
    std::vector<T> encoded(EncodedCount<T>(size));
    Encode(values, encoded);
    return encoded;
  }
}

template <typename T>
std::vector<T> TreeSum(const std::vector<std::vector<T>>& shards, ShardRange node) {
  if (node.size() == 1) return shards[static_cast<size_t>(node.begin)];
  const int mid = SplitPoint(node);
  std::vector<T> left = TreeSum(shards, {node.begin, mid});
  const std::vector<T> right = TreeSum(shards, {mid, node.end});
  Add(left.data(), left.data(), right.data(), left.size());
  return left;
}

template <typename T>
bool SameBytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <typename T>
class OrderedSumTypesTest : public ::testing::Test {
 protected:
  // Where there are more ranks than shards some have none.
  void ExpectTree(int world, Wires wires, std::span<const size_t> sizes, size_t segment_bytes) {
    std::vector<std::vector<std::vector<T>>> shards(sizes.size());
    std::vector<std::vector<T>> want;
    for (size_t i = 0; i < sizes.size(); ++i) {
      for (int s = 0; s < kShards; ++s) shards[i].push_back(RandomShard<T>(sizes[i], random_));
      want.push_back(TreeSum(shards[i], {0, kShards}));
    }
    Group group(world, wires);
    group.options.segment_bytes = segment_bytes;
    for (const Algorithm schedule :
         {Algorithm::kDirect, Algorithm::kHalvingDoubling, Algorithm::kOneShot}) {
      group.options.algorithm = schedule;
      group.Run([&](Communicator& comm) {
        for (size_t i = 0; i < sizes.size(); ++i) {
          SCOPED_TRACE(
              fmt::format("{} of {} by {}, seed {}", NameOf(schedule), sizes[i], world, seed_));
          OrderedSum<T> sum(kShards, want[i].size());
          for (int shard = 0; shard < kShards; ++shard) {
            if (shard * world / kShards != comm.rank()) continue;
            ASSERT_TRUE(sum.Add(shard, shards[i][static_cast<size_t>(shard)]).ok());
          }
          std::vector<T> out(want[i].size());
          // The second time the ranks know who has what, and two may go another way.
          for (int turn = 0; turn < 2; ++turn) {
            std::fill(out.begin(), out.end(), T());
            const absl::Status status = sum.Reduce(comm, out, "gradient");
            ASSERT_TRUE(status.ok()) << status;
            EXPECT_TRUE(SameBytes(out, want[i])) << "turn " << turn;
          }
        }
      });
    }
  }

  const unsigned seed_ = std::random_device{}();
  std::mt19937 random_{seed_};
};

using Types = ::testing::Types<float, double, BFloat16, HalfBlock>;
TYPED_TEST_SUITE(OrderedSumTypesTest, Types);

TYPED_TEST(OrderedSumTypesTest, OfFewElementsIsTheTreesByEveryScheduleAtEveryWorld) {
  constexpr Wires kWires[] = {Wires::kShared, Wires::kTcp, Wires::kMixed};
  for (const int world : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 32})
    this->ExpectTree(world, kWires[static_cast<size_t>(world) % std::size(kWires)], kSizes,
                     kShortSegmentBytes);
}

TYPED_TEST(OrderedSumTypesTest, OfManyElementsIsTheTreesByEverySchedule) {
  for (const int world : {2, 3, 8}) this->ExpectTree(world, Wires::kShared, kMany, kSegmentBytes);
  for (const int world : {2, 3}) this->ExpectTree(world, Wires::kTcp, kMany, kSegmentBytes);
}

template <typename T>
class SixteenBitSumTest : public ::testing::Test {};
using SixteenBitTypes = ::testing::Types<BFloat16, HalfBlock>;
TYPED_TEST_SUITE(SixteenBitSumTest, SixteenBitTypes);

TYPED_TEST(SixteenBitSumTest, HalvesTheBytesOfFloats) {
  constexpr int kWorld = 2;
  constexpr size_t kFloats = 3 * HalfBlock::kValues + 77;
  Group group(kWorld);
  group.Run([&](Communicator& comm) {
    OrderedSum<float> floats(kWorld, kFloats);
    OrderedSum<TypeParam> small(kWorld, EncodedCount<TypeParam>(kFloats));
    std::vector<float> values(kFloats);
    std::vector<TypeParam> out(EncodedCount<TypeParam>(kFloats));
    ASSERT_TRUE(floats.Add(comm.rank(), values).ok());
    ASSERT_TRUE(floats.Reduce(comm, values, "floats").ok());
    const uint64_t before = comm.stats().of(OperationKind::kOrderedSum).bytes_sent;
    ASSERT_TRUE(small.Add(comm.rank(), out).ok());
    ASSERT_TRUE(small.Reduce(comm, out, "small").ok());
    const uint64_t sent = comm.stats().of(OperationKind::kOrderedSum).bytes_sent - before;
    EXPECT_NEAR(static_cast<double>(sent) / static_cast<double>(before), 0.5, 0.15);
  });
}

}  // namespace
}  // namespace ringmaster::collectives
