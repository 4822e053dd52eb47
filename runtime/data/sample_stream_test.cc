#include "runtime/data/sample_stream.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::data {
namespace {

std::vector<uint32_t> ReadAll(SampleStream& stream, uint64_t first, size_t count) {
  std::vector<uint32_t> rows(count);
  stream.Read(first, rows);
  return rows;
}

TEST(SampleStreamTest, VisitsEverySampleOnceInEachEpoch) {
  constexpr uint32_t kSamples = 1438;
  SampleStream stream(7, kSamples);
  std::vector<uint32_t> all(kSamples);
  std::iota(all.begin(), all.end(), 0u);
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_THAT(ReadAll(stream, epoch * kSamples, kSamples),
                testing::UnorderedElementsAreArray(all));
  }
}

TEST(SampleStreamTest, OrdersEachEpochAndEachSeedDifferently) {
  SampleStream seven(7, 100), eight(8, 100);
  EXPECT_NE(ReadAll(seven, 0, 100), ReadAll(seven, 100, 100));
  EXPECT_NE(ReadAll(seven, 0, 100), ReadAll(eight, 0, 100));
}

TEST(SampleStreamTest, ABatchAcrossAnEpochsEndContinuesWithTheNextOrder) {
  SampleStream stream(1, 10), again(1, 10);
  std::vector<uint32_t> joined = ReadAll(stream, 0, 10);
  const std::vector<uint32_t> next = ReadAll(stream, 10, 10);
  joined.insert(joined.end(), next.begin(), next.end());
  EXPECT_EQ(ReadAll(again, 8, 4), std::vector<uint32_t>(joined.begin() + 8, joined.begin() + 12));
}

TEST(SampleStreamTest, ABatchLargerThanTheDataRepeatsWholeEpochs) {
  SampleStream stream(1, 3);
  const std::vector<uint32_t> rows = ReadAll(stream, 2, 10);
  for (size_t epoch = 0; epoch < 3; ++epoch) {
    const std::vector<uint32_t> pass(rows.begin() + 1 + 3 * epoch, rows.begin() + 4 + 3 * epoch);
    EXPECT_THAT(pass, ::testing::UnorderedElementsAre(0u, 1u, 2u)) << epoch;
  }
}

TEST(SampleStreamTest, APositionHoldsTheSameSampleWhoeverAsksInWhateverOrder) {
  SampleStream forward(3, 37), backward(3, 37);
  const std::vector<uint32_t> all = ReadAll(forward, 0, 200);
  for (uint64_t position = 200; position-- > 0;) {
    EXPECT_EQ(ReadAll(backward, position, 1)[0], all[position]) << position;
  }
}

TEST(ShardRowsTest, CoversTheBatchInOrderWithSizesThatDifferByAtMostOne) {
  for (int64_t batch = 1; batch <= 70; ++batch) {
    for (int64_t shards = 1; shards <= batch; ++shards) {
      int64_t next = 0, smallest = batch, largest = 0;
      for (int64_t shard = 0; shard < shards; ++shard) {
        const RowRange rows = ShardRows(batch, shards, shard);
        ASSERT_EQ(rows.begin, next);
        next = rows.end;
        smallest = std::min(smallest, rows.size());
        largest = std::max(largest, rows.size());
      }
      ASSERT_EQ(next, batch);
      ASSERT_GE(smallest, 1);
      ASSERT_LE(largest - smallest, 1);
    }
  }
}

TEST(StepsTest, EpochsRoundUpToWholeSteps) {
  EXPECT_EQ(StepsForEpochs(1, 1438, 64), 23u);
  EXPECT_EQ(StepsForEpochs(20, 1438, 64), 450u);  // 28760 / 64 = 449.4
  EXPECT_EQ(StepsForEpochs(2, 64, 64), 2u);
  EXPECT_EQ(StepsForEpochs(0.001, 64, 64), 1u);
  EXPECT_EQ(StepsForEpochs(1, 4294967295u, 1), 4294967295u);
}

TEST(StepsTest, CountsEpochsInSamples) {
  EXPECT_DOUBLE_EQ(EpochsAfter(3, 128, 64), 1.5);
  EXPECT_EQ(FirstPosition(5'000'000'000u, 4096), 20'480'000'000'000u);
}

}  // namespace
}  // namespace ringmaster::data
