#include "runtime/train/memory_check.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/collectives/testing/group.h"

namespace ringmaster::train {
namespace {

using collectives::Communicator;
using device::MemoryPool;

constexpr int64_t kGb = 1'000'000'000;

// What the ranks of a group are told, which is the same.
std::string Complaint(const std::vector<MemoryNeed>& needs) {
  collectives::testing::Group group(static_cast<int>(needs.size()));
  std::vector<std::string> told(needs.size(), "never asked");
  group.Run([&](Communicator& comm) {
    const auto rank = static_cast<size_t>(comm.rank());
    const auto lack = FindLackOfMemory(comm, needs[rank]);
    ASSERT_TRUE(lack.ok()) << lack.status();
    told[rank] = lack->value_or("");
  });
  for (const std::string& text : told) EXPECT_EQ(text, told[0]);
  return told[0];
}

MemoryPool Machine(const std::string& name, int64_t available) {
  return {name, "machine", available};
}
MemoryPool Container(const std::string& name, int64_t available) {
  return {name, "container", available};
}

TEST(MemoryCheckTest, RanksOfOneMachineNeedRoomForAllOfThem) {
  EXPECT_EQ(Complaint({{3 * kGb, {Machine("a", 6 * kGb)}}, {3 * kGb, {Machine("a", 6 * kGb)}}}),
            "");
  EXPECT_EQ(
      Complaint({{3 * kGb, {Machine("a", 6 * kGb - 1)}}, {3 * kGb, {Machine("a", 6 * kGb - 1)}}}),
      "workers 0, 1 need 6.00 GB more of memory together, their machine has 6.00 GB left; "
      "start fewer workers there, cut the batch into more shards (batch.shards), make it "
      "smaller, or give the workers more memory");
}

TEST(MemoryCheckTest, RanksOfSeveralMachinesAreAddedUpForEach) {
  const MemoryNeed here{3 * kGb, {Machine("a", 5 * kGb)}}, there{3 * kGb, {Machine("b", 7 * kGb)}};
  EXPECT_EQ(Complaint({here, there, there}), "");
  EXPECT_TRUE(Complaint({there, here, there, here}).starts_with("workers 1, 3 need 6.00 GB more"));
}

// The last to look has seen what the others had taken by then.
TEST(MemoryCheckTest, TheLeastThatARankHasSeenCounts) {
  EXPECT_NE(Complaint({{kGb, {Machine("a", 8 * kGb)}}, {kGb, {Machine("a", kGb)}}}), "");
}

TEST(MemoryCheckTest, ContainersOfOneMachineHaveLimitsOfTheirOwn) {
  const auto in = [](const std::string& container, int64_t left) {
    return MemoryNeed{2 * kGb, {Machine("a", 9 * kGb), Container(container, left)}};
  };
  EXPECT_EQ(Complaint({in("a/1", 2 * kGb), in("a/2", 2 * kGb), in("a/3", 2 * kGb)}), "");
  EXPECT_TRUE(Complaint({in("a/1", 3 * kGb), in("a/2", 2 * kGb), in("a/1", 3 * kGb)})
                  .starts_with("workers 0, 2 need 4.00 GB more of memory together, their container "
                               "has 3.00 GB left; "));
  EXPECT_TRUE(Complaint({in("a/1", 2 * kGb), in("a/2", kGb)})
                  .starts_with("worker 1 needs 2.00 GB more of memory, its container has "));
  EXPECT_TRUE(Complaint(std::vector<MemoryNeed>(5, in("a/1", 20 * kGb)))
                  .starts_with("workers 0, 1, 2, 3, 4 need 10.00 GB more of memory together, their "
                               "machine has 9.00 GB left; "));
}

TEST(MemoryCheckTest, WhereNobodyCanTellWhoSharesItNobodyIsRefused) {
  EXPECT_EQ(Complaint({{9 * kGb, {Machine("", kGb)}}, {9 * kGb, {}}}), "");
}

}  // namespace
}  // namespace ringmaster::train
