#include "launcher/cpu_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/contract.h"
#include "common/cpu_list.h"

namespace ringmaster::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Each a core of its own, in one domain.
std::vector<Core> Cores(const std::vector<int>& cpus) {
  std::vector<Core> cores;
  for (const int cpu : cpus) cores.push_back({.cpus = {cpu}, .domain = 0});
  return cores;
}

const std::vector<Core> kEight = Cores({0, 1, 2, 3, 4, 5, 6, 7});

TEST(CpuBindingTest, ReadsAListAsLinuxWritesIt) {
  EXPECT_THAT(*ChooseCpus("6,0-2", kEight), ElementsAre(0, 1, 2, 6));
}

TEST(CpuBindingTest, TakesOnlyThoseThatAreAllowed) {
  EXPECT_THAT(*ChooseCpus("0-7", Cores({2, 5})), ElementsAre(2, 5));
  EXPECT_FALSE(ChooseCpus("0-1", Cores({2, 5})).ok());
}

TEST(CpuBindingTest, CutsTheAllowedOnesIntoEvenShares) {
  EXPECT_THAT(*ChooseCpus("0/4", kEight), ElementsAre(0, 1));
  EXPECT_THAT(*ChooseCpus("3/4", kEight), ElementsAre(6, 7));
  EXPECT_THAT(*ChooseCpus("1/3", Cores({4, 5, 8, 9})), ElementsAre(5));
  EXPECT_THAT(*ChooseCpus("2/3", Cores({4, 5, 8, 9})), ElementsAre(8, 9));
}

TEST(CpuBindingTest, LetsNeighboursShareWhereThereAreTooFew) {
  EXPECT_THAT(*ChooseCpus("0/4", Cores({0, 1})), ElementsAre(0));
  EXPECT_THAT(*ChooseCpus("1/4", Cores({0, 1})), ElementsAre(0));
  EXPECT_THAT(*ChooseCpus("3/4", Cores({0, 1})), ElementsAre(1));
}

TEST(CpuBindingTest, RefusesWhatIsNeitherAListNorAShare) {
  for (const char* text : {"", "x", "3-1", "1,,2", "1,", "4/4", "0/0", "-1", "1/x", "999999"})
    EXPECT_EQ(ChooseCpus(text, kEight).status().code(), absl::StatusCode::kInvalidArgument) << text;
}

TEST(CpuBindingTest, CutsBetweenCoresAndDomainsNotThroughThem) {
  const std::vector<Core> cores{{.cpus = {0, 4}, .domain = 0},
                                {.cpus = {2, 6}, .domain = 0},
                                {.cpus = {1, 5}, .domain = 1},
                                {.cpus = {3, 7}, .domain = 1}};
  EXPECT_THAT(*ChooseCpus("0/2", cores), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(*ChooseCpus("2/4", cores), ElementsAre(1, 5));
  EXPECT_THAT(*ChooseCpus("1/8", cores), ElementsAre(4));
}

TEST(CpuBindingTest, BindsNothingWhereTheJobDoesNotAskForIt) {
  const auto environment = BindingFor("", AllowedCpus(), "");
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_TRUE(environment->empty());
}

TEST(CpuBindingTest, TellsTheTrainersOpenMpAndItsOwnThreadsWhereTheyBelong) {
  const int last = AllowedCpus().back();
  const auto environment = BindingFor("1+0", {last}, std::to_string(last));
  ASSERT_TRUE(environment.ok()) << environment.status();
  EXPECT_EQ(environment->at("OMP_PLACES"), "{" + std::to_string(last) + "}");
  EXPECT_EQ(environment->at(contract::kEnvOtherCpus), std::to_string(last));
}

TEST(CpuBindingTest, SaysWhyThreadsCannotBeBoundHere) {
  const std::vector<int> allowed = AllowedCpus();
  const auto why = [&](const char* request, const char* kept) {
    return std::string(BindingFor(request, allowed, kept).status().message());
  };
  EXPECT_THAT(why("1024+0", ""), HasSubstr("1024 threads"));
  EXPECT_THAT(why("1+0", contract::kNoCores), HasSubstr("too few cores for all its workers"));
  EXPECT_THAT(why("two", ""), HasSubstr("RINGMASTER_BIND: 'two'"));
  EXPECT_THAT(why("1+0", "x"), HasSubstr("RINGMASTER_CORES: 'x'"));
}

}  // namespace
}  // namespace ringmaster::launcher
