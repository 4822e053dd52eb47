#include "common/cpu_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster {
namespace {

using ::testing::ElementsAre;

TEST(CpuListTest, ReadsWhatLinuxWrites) {
  EXPECT_THAT(*ParseCpuList("6,0-2\n"), ElementsAre(0, 1, 2, 6));
  EXPECT_THAT(*ParseCpuList("3,3,2-3"), ElementsAre(2, 3));
}

TEST(CpuListTest, RefusesAnythingElse) {
  for (const char* text : {"", "\n", "x", "3-1", "1,,2", "1,", "-1", "0-", "999999", "1 2"})
    EXPECT_FALSE(ParseCpuList(text).has_value()) << text;
}

TEST(CpuListTest, WritesTheShortestTextThatReadsAsTheSame) {
  const std::vector<int> cpus{8, 2, 1, 0, 5, 6};
  EXPECT_EQ(FormatCpuList(cpus), "0-2,5-6,8");
  EXPECT_THAT(*ParseCpuList(FormatCpuList(cpus)), ElementsAre(0, 1, 2, 5, 6, 8));
  EXPECT_EQ(FormatCpuList({}), "");
}

TEST(CpuListTest, FindsAtLeastOneProcessorThatThisThreadMayRunOn) {
  EXPECT_FALSE(AllowedCpus().empty());
}

}  // namespace
}  // namespace ringmaster
