// The ordered sum of 16-bit numbers: rounded at every node of the tree, so the same bits at every
// world size.
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/collectives/add.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/compression/sixteen_bits.h"
#include "runtime/collectives/ordered_sum.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives {
namespace {

using testing::Group;

constexpr size_t kFloats = 3 * HalfBlock::kValues + 77;

template <typename T>
class RoundedSumTest : public ::testing::Test {};
using Types = ::testing::Types<BFloat16, HalfBlock>;
TYPED_TEST_SUITE(RoundedSumTest, Types);

template <typename T>
std::vector<std::vector<T>> RandomShards(int shards, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::vector<T>> encoded;
  for (int shard = 0; shard < shards; ++shard) {
    std::vector<float> values(kFloats);
    for (float& value : values)
      value = std::ldexp(normal(random), static_cast<int>(random() % 30) - 15);
    Encode(values, encoded.emplace_back(EncodedCount<T>(kFloats)));
  }
  return encoded;
}

template <typename T>
bool SameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// The definition, written out.
template <typename T>
std::vector<T> TreeSum(const std::vector<std::vector<T>>& shards, ShardRange node) {
  if (node.size() == 1) return shards[static_cast<size_t>(node.begin)];
  const int mid = SplitPoint(node);
  std::vector<T> left = TreeSum(shards, {node.begin, mid});
  const std::vector<T> right = TreeSum(shards, {mid, node.end});
  Add(left.data(), left.data(), right.data(), left.size());
  return left;
}

TYPED_TEST(RoundedSumTest, HasTheTreesBitsAtEveryWorldSize) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr int kShards = 7;
  const auto shards = RandomShards<TypeParam>(kShards, seed);
  const std::vector<TypeParam> wanted = TreeSum(shards, {0, kShards});
  for (int world = 1; world <= kShards; ++world) {
    SCOPED_TRACE("world " + std::to_string(world));
    Group group(world);
    group.options.segment_bytes = 1100;  // two blocks
    group.Run([&](Communicator& comm) {
      OrderedSum<TypeParam> sum(kShards, wanted.size());
      const ShardRange owned = OwnedShards(kShards, world, comm.rank());
      for (int s = owned.begin; s < owned.end; ++s)
        ASSERT_TRUE(sum.Add(s, shards[static_cast<size_t>(s)]).ok());
      std::vector<TypeParam> out(wanted.size());
      const absl::Status status = sum.Reduce(comm, out, "gradient");
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_TRUE(SameBits(out, wanted));
    });
  }
}

TYPED_TEST(RoundedSumTest, HalvesTheBytesOfFloats) {
  constexpr int kWorld = 2;
  const auto shards = RandomShards<TypeParam>(kWorld, 1);
  Group group(kWorld);
  group.Run([&](Communicator& comm) {
    OrderedSum<float> floats(kWorld, kFloats);
    OrderedSum<TypeParam> small(kWorld, EncodedCount<TypeParam>(kFloats));
    std::vector<float> values(kFloats);
    std::vector<TypeParam> out(EncodedCount<TypeParam>(kFloats));
    ASSERT_TRUE(floats.Add(comm.rank(), values).ok());
    ASSERT_TRUE(floats.Reduce(comm, values, "floats").ok());
    const uint64_t before = comm.stats().of(OperationKind::kOrderedSum).bytes_sent;
    ASSERT_TRUE(small.Add(comm.rank(), shards[static_cast<size_t>(comm.rank())]).ok());
    ASSERT_TRUE(small.Reduce(comm, out, "small").ok());
    const uint64_t sent = comm.stats().of(OperationKind::kOrderedSum).bytes_sent - before;
    EXPECT_NEAR(static_cast<double>(sent) / static_cast<double>(before), 0.5, 0.15);
  });
}

}  // namespace
}  // namespace ringmaster::collectives
