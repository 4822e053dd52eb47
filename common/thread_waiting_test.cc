#include "common/thread_waiting.h"

#include <stdlib.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class ThreadWaitingTest : public ::testing::Test {
 protected:
  ThreadWaitingTest() { Clear(); }
  ~ThreadWaitingTest() override { Clear(); }

  static void Clear() {
    ::unsetenv("GOMP_SPINCOUNT");
    ::unsetenv("OMP_WAIT_POLICY");
  }
};

TEST_F(ThreadWaitingTest, IsShort) {
  EXPECT_THAT(WaitingEnvironment(), ElementsAre(Pair("GOMP_SPINCOUNT", "3000")));
}

TEST_F(ThreadWaitingTest, IsWhatTheEnvironmentSays) {
  ::setenv("GOMP_SPINCOUNT", "infinite", 1);
  EXPECT_THAT(WaitingEnvironment(), IsEmpty());
  Clear();
  ::setenv("OMP_WAIT_POLICY", "active", 1);
  EXPECT_THAT(WaitingEnvironment(), IsEmpty());
}

}  // namespace
}  // namespace ringmaster
