#include "runtime/device/threads.h"

#include <omp.h>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/parallel.h"

namespace ringmaster::device {
namespace {

TEST(ThreadsTest, TheCountIsFixedByTheFirstCallAndAdoptedByEveryThread) {
  EXPECT_EQ(SetThreadCount(0).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(SetThreadCount(2).ok());
  EXPECT_TRUE(SetThreadCount(2).ok());
  EXPECT_EQ(SetThreadCount(3).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ThreadCount(), 2);
  int seen = 0;
  std::thread other([&seen] {
    AdoptThreadCount();
    seen = omp_get_max_threads();
  });
  other.join();
  EXPECT_EQ(seen, 2);
}

TEST(ThreadsTest, ParallelForVisitsEveryIndexOnce) {
  for (const int64_t n : {0, 1, 7, 1000}) {
    std::vector<int> visits(static_cast<size_t>(n), 0);
    ParallelFor(n, 1, [&](int64_t i) { ++visits[static_cast<size_t>(i)]; });
    for (const int v : visits) EXPECT_EQ(v, 1);
  }
}

}  // namespace
}  // namespace ringmaster::device
