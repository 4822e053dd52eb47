#include "common/thread_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/contract.h"
#include "common/cpu_list.h"

namespace ringmaster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Four processors, each a core of its own.
BindingPlace FourCores() {
  BindingPlace place{.allowed = {0, 1, 2, 3}, .cores = {}, .limit = {}};
  for (const int cpu : place.allowed) place.cores.push_back({.cpus = {cpu}, .domain = 0});
  return place;
}

TEST(ThreadBindingTest, ReadsTheRequestThatItWrites) {
  const auto request = ParseBindRequest(FormatBindRequest({.threads = 3, .communication = 1}));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->threads, 3);
  EXPECT_EQ(request->communication, 1);
}

TEST(ThreadBindingTest, RefusesWhatIsNoRequest) {
  for (const char* text : {"", "2", "2+", "+1", "0+1", "-1+0", "2+-1", "2+1+1", "many", "99999+0"})
    EXPECT_EQ(ParseBindRequest(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
}

TEST(ThreadBindingTest, OtherThreadsRunAnywhereUnlessCoresAreSetApartForThem) {
  EXPECT_THAT(PlanBinding({.threads = 2}, FourCores())->others, ElementsAre(0, 1, 2, 3));
  const auto apart = PlanBinding({.threads = 2, .communication = 1}, FourCores());
  EXPECT_THAT(apart->compute, ElementsAre(0, 1));
  EXPECT_THAT(apart->others, ElementsAre(2));
}

TEST(ThreadBindingTest, RefusesCoresThatItsControlGroupSharesWithOthers) {
  BindingPlace place = FourCores();
  place.limit.processors = 2;
  EXPECT_THAT(std::string(PlanBinding({.threads = 2}, place).status().message()),
              HasSubstr("the time of 2 of these 4 processors"));
  place.limit.processors = 4;
  EXPECT_TRUE(PlanBinding({.threads = 2}, place).ok());
}

TEST(ThreadBindingTest, RefusesMoreThreadsThanProcessors) {
  EXPECT_THAT(
      std::string(PlanBinding({.threads = 4, .communication = 1}, FourCores()).status().message()),
      HasSubstr("and 4 are there"));
}

TEST(ThreadBindingTest, IsRefusedAProcessorThatIsNotThisProcesss) {
  EXPECT_TRUE(CheckMayBind({.compute = {AllowedCpus().front()}, .others = {}}).ok());
  const std::vector<int> before = AllowedCpus();
  EXPECT_FALSE(CheckMayBind({.compute = {1023}, .others = {}}).ok());
  EXPECT_EQ(AllowedCpus(), before);
}

TEST(ThreadBindingTest, NamesAPlaceForEachThreadInOrder) {
  const auto environment = BindingEnvironment({.compute = {5, 2}, .others = {0, 1}});
  EXPECT_EQ(environment.at("OMP_PLACES"), "{5},{2}");
  EXPECT_EQ(environment.at("OMP_PROC_BIND"), "close");
  EXPECT_EQ(environment.at(contract::kEnvOtherCpus), "0-1");
}

}  // namespace
}  // namespace ringmaster
