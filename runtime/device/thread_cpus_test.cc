#include "runtime/device/thread_cpus.h"

#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/contract.h"
#include "common/cpu_list.h"

namespace ringmaster::device {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int> CpusOfANewThread() {
  std::vector<int> cpus;
  std::thread([&] { cpus = AllowedCpus(); }).join();
  return cpus;
}

TEST(ThreadCpusTest, NewThreadsRunWhereTheyAreTold) {
  const std::vector<int> all = AllowedCpus();
  const int last = all.back();
  ASSERT_TRUE(PlaceOtherThreads(std::vector{last}).ok());
  EXPECT_THAT(CpusOfANewThread(), ElementsAre(last));
  EXPECT_EQ(AllowedCpus(), all);
  ASSERT_TRUE(PlaceOtherThreads(all).ok());
  EXPECT_EQ(CpusOfANewThread(), all);
}

TEST(ThreadCpusTest, AMalformedListIsAnErrorThatNamesTheVariable) {
  ::setenv(contract::kEnvOtherCpus, "some", 1);
  EXPECT_THAT(std::string(PlaceOtherThreadsAsTold().message()),
              HasSubstr("RINGMASTER_OTHER_CPUS: 'some'"));
  ::unsetenv(contract::kEnvOtherCpus);
  EXPECT_TRUE(PlaceOtherThreadsAsTold().ok());
}

}  // namespace
}  // namespace ringmaster::device
