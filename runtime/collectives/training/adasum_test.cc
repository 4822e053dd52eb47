#include "runtime/collectives/training/adasum.h"

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives {
namespace {

using ::testing::FloatEq;
using testing::Group;
using ::testing::Pointwise;

using Vector = std::vector<float>;

// The definition for one tensor, in double.
std::vector<double> Join(const std::vector<double>& a, const std::vector<double>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  const double fa = aa > 0 ? 1 - ab / (2 * aa) : 1;
  const double fb = bb > 0 ? 1 - ab / (2 * bb) : 1;
  std::vector<double> joined(a.size());
  for (size_t i = 0; i < a.size(); ++i) joined[i] = fa * a[i] + fb * b[i];
  return joined;
}

std::vector<double> JoinTree(const std::vector<std::vector<double>>& shards, ShardRange node) {
  if (node.size() == 1) return shards[static_cast<size_t>(node.begin)];
  const int mid = SplitPoint(node);
  return Join(JoinTree(shards, {node.begin, mid}), JoinTree(shards, {mid, node.end}));
}

// What every rank gets.
std::vector<Vector> ReduceAcross(int world, const std::vector<Vector>& shards,
                                 const std::vector<size_t>& tensors) {
  const int count = static_cast<int>(shards.size());
  std::vector<Vector> results(static_cast<size_t>(world));
  Group group(world);
  group.Run([&](Communicator& comm) {
    Adasum join(count, shards[0].size(), tensors);
    const ShardRange owned = OwnedShards(count, world, comm.rank());
    for (int s = owned.begin; s < owned.end; ++s)
      ASSERT_TRUE(join.Add(s, shards[static_cast<size_t>(s)]).ok());
    Vector& out = results[static_cast<size_t>(comm.rank())];
    out.resize(shards[0].size());
    const absl::Status status = join.Reduce(comm, out, "gradient");
    ASSERT_TRUE(status.ok()) << status;
  });
  return results;
}

TEST(AdasumTest, AddsOrthogonalVectorsAndAveragesEqualOnes) {
  EXPECT_THAT(ReduceAcross(2, {{3, 0}, {0, 5}}, {0})[0], Pointwise(FloatEq(), {3.0F, 5.0F}));
  EXPECT_THAT(ReduceAcross(2, {{3, 4}, {3, 4}}, {0})[0], Pointwise(FloatEq(), {3.0F, 4.0F}));
  EXPECT_THAT(ReduceAcross(2, {{3, 0}, {3, 0}}, {0, 1})[0], Pointwise(FloatEq(), {3.0F, 0.0F}));
}

TEST(AdasumTest, JoinsEachTensorByItself) {
  EXPECT_THAT(ReduceAcross(2, {{1, 0, 2}, {0, 1, 2}}, {0, 2})[1],
              Pointwise(FloatEq(), {1.0F, 1.0F, 2.0F}));
}

TEST(AdasumTest, StaysFiniteWhereOneVectorIsFarLongerThanTheOther) {
  const std::vector<Vector> shards = {{1e-40f, 0}, {1, 1}};
  EXPECT_EQ(ReduceAcross(2, shards, {0})[0], (Vector{0.5f, 1}));
}

TEST(AdasumTest, IsTheDefinitionsAndHasTheSameBitsAtEveryWorldSize) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  constexpr int kShards = 6;
  const std::vector<size_t> tensors = {0, 3000, 3007, 8000};
  constexpr size_t kElements = 9001;
  std::vector<Vector> shards(kShards, Vector(kElements));
  for (Vector& shard : shards) {
    for (float& value : shard) value = normal(random) + 0.5F;
  }
  Vector wanted;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const size_t end = t + 1 < tensors.size() ? tensors[t + 1] : kElements;
    std::vector<std::vector<double>> parts;
    for (const Vector& shard : shards)
      parts.emplace_back(shard.begin() + static_cast<std::ptrdiff_t>(tensors[t]),
                         shard.begin() + static_cast<std::ptrdiff_t>(end));
    for (const double value : JoinTree(parts, {0, kShards}))
      wanted.push_back(static_cast<float>(value));
  }
  const Vector alone = ReduceAcross(1, shards, tensors)[0];
  for (size_t i = 0; i < kElements; ++i) ASSERT_NEAR(alone[i], wanted[i], 1e-4) << i;
  for (int world = 2; world <= kShards; ++world) {
    for (const Vector& result : ReduceAcross(world, shards, tensors)) {
      ASSERT_EQ(result.size(), alone.size());
      EXPECT_EQ(std::memcmp(result.data(), alone.data(), alone.size() * sizeof(float)), 0)
          << "world " << world;
    }
  }
}

TEST(AdasumTest, RefusesShardsOutOfOrderOrMissing) {
  Adasum join(4, 3, {0});
  EXPECT_EQ(join.Add(0, Vector(2)).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(join.Add(0, Vector(3)).ok());
  EXPECT_EQ(join.Add(2, Vector(3)).code(), absl::StatusCode::kInvalidArgument);
  Group group(1);
  group.Run([&](Communicator& comm) {
    Vector out(3);
    EXPECT_EQ(join.Reduce(comm, out, "gradient").code(), absl::StatusCode::kFailedPrecondition);
  });
}

}  // namespace
}  // namespace ringmaster::collectives
