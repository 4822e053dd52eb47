#include "runtime/data/sample_ledger.h"

#include <vector>

#include <gtest/gtest.h>

#include "runtime/data/sample_stream.h"

namespace ringmaster::data {
namespace {

constexpr uint32_t kSamples = 10;

// The digest after `steps` steps of four samples each.
std::string DigestAfter(int steps, uint64_t seed = 1, const std::string& data = "digits") {
  SampleLedger ledger(data, seed, kSamples);
  SampleStream stream(seed, kSamples);
  std::vector<uint32_t> rows(4);
  for (int step = 0; step < steps; ++step) {
    stream.Read(ledger.next_position(), rows);
    EXPECT_TRUE(ledger.Append(ledger.next_position(), rows).ok());
  }
  return ledger.digest();
}

TEST(SampleLedgerTest, DependsOnTheDataTheSeedAndTheSteps) {
  EXPECT_EQ(DigestAfter(5), DigestAfter(5));
  EXPECT_NE(DigestAfter(5), DigestAfter(6));
  EXPECT_NE(DigestAfter(5), DigestAfter(5, 2));
  EXPECT_NE(DigestAfter(0), DigestAfter(0, 1, "other"));
}

TEST(SampleLedgerTest, TellsAnotherSampleAndAnotherOrder) {
  const std::vector<std::vector<uint32_t>> batches = {{1, 2, 3}, {1, 3, 2}, {1, 2, 4}};
  std::vector<std::string> digests;
  for (const auto& batch : batches) {
    SampleLedger ledger("digits", 1, kSamples);
    ASSERT_TRUE(ledger.Append(0, batch).ok());
    digests.push_back(ledger.digest());
  }
  EXPECT_NE(digests[0], digests[1]);
  EXPECT_NE(digests[0], digests[2]);
}

TEST(SampleLedgerTest, RefusesASkippedOrRepeatedStep) {
  SampleLedger ledger("digits", 1, kSamples);
  const std::vector<uint32_t> rows = {1, 2};
  ASSERT_TRUE(ledger.Append(0, rows).ok());
  const std::string before = ledger.digest();
  EXPECT_EQ(ledger.Append(0, rows).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ledger.Append(4, rows).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ledger.digest(), before);
  EXPECT_EQ(ledger.next_position(), 2u);
}

TEST(SampleLedgerTest, AResumedRunEndsWithTheDigestOfAnUndisturbedOne) {
  SampleLedger resumed("digits", 1, kSamples);
  ASSERT_TRUE(resumed.Restore(8, DigestAfter(2)).ok());
  SampleStream stream(1, kSamples);
  std::vector<uint32_t> rows(4);
  for (int step = 2; step < 5; ++step) {
    stream.Read(resumed.next_position(), rows);
    ASSERT_TRUE(resumed.Append(resumed.next_position(), rows).ok());
  }
  EXPECT_EQ(resumed.digest(), DigestAfter(5));
}

TEST(SampleLedgerTest, RefusesADigestThatIsNone) {
  SampleLedger ledger("digits", 1, kSamples);
  const std::string before = ledger.digest();
  for (const std::string& bad : {std::string(), std::string(63, 'a'), std::string(64, 'g'),
                                 std::string(66, 'a'), std::string(62, 'a') + "+1"}) {
    EXPECT_EQ(ledger.Restore(4, bad).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(ledger.digest(), before);
}

}  // namespace
}  // namespace ringmaster::data
