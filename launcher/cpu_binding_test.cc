#include "launcher/cpu_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::launcher {
namespace {

using ::testing::ElementsAre;

const std::vector<int> kEight{0, 1, 2, 3, 4, 5, 6, 7};

TEST(CpuBindingTest, ReadsAListAsLinuxWritesIt) {
  EXPECT_THAT(*ChooseCpus("6,0-2", kEight), ElementsAre(0, 1, 2, 6));
}

TEST(CpuBindingTest, TakesOnlyThoseThatAreAllowed) {
  EXPECT_THAT(*ChooseCpus("0-7", {2, 5}), ElementsAre(2, 5));
  EXPECT_FALSE(ChooseCpus("0-1", {2, 5}).ok());
}

TEST(CpuBindingTest, CutsTheAllowedOnesIntoEvenShares) {
  EXPECT_THAT(*ChooseCpus("0/4", kEight), ElementsAre(0, 1));
  EXPECT_THAT(*ChooseCpus("3/4", kEight), ElementsAre(6, 7));
  EXPECT_THAT(*ChooseCpus("1/3", {4, 5, 8, 9}), ElementsAre(5));
  EXPECT_THAT(*ChooseCpus("2/3", {4, 5, 8, 9}), ElementsAre(8, 9));
}

TEST(CpuBindingTest, LetsNeighboursShareWhereThereAreTooFew) {
  EXPECT_THAT(*ChooseCpus("0/4", {0, 1}), ElementsAre(0));
  EXPECT_THAT(*ChooseCpus("1/4", {0, 1}), ElementsAre(0));
  EXPECT_THAT(*ChooseCpus("3/4", {0, 1}), ElementsAre(1));
}

TEST(CpuBindingTest, RefusesWhatIsNeitherAListNorAShare) {
  for (const char* text : {"", "x", "3-1", "1,,2", "1,", "4/4", "0/0", "-1", "1/x", "999999"})
    EXPECT_EQ(ChooseCpus(text, kEight).status().code(), absl::StatusCode::kInvalidArgument) << text;
}

TEST(CpuBindingTest, FindsAtLeastOneProcessorHere) {
  EXPECT_FALSE(AllowedCpus().empty());
}

}  // namespace
}  // namespace ringmaster::launcher
