#include "operator/manager/parallel.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::manager {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(ForEachParallelTest, CallsEachIndexOnce) {
  std::vector<std::atomic<int>> calls(100);
  EXPECT_TRUE(ForEachParallel(calls.size(), 8, [&](std::size_t i) {
                ++calls[i];
                return absl::OkStatus();
              }).ok());
  EXPECT_THAT(std::vector<int>(calls.begin(), calls.end()), Each(1));
}

TEST(ForEachParallelTest, ReturnsTheErrorOfTheLowestIndexAfterTryingAll) {
  std::atomic<int> calls = 0;
  const absl::Status status = ForEachParallel(10, 3, [&](std::size_t i) {
    ++calls;
    if (i == 7) return absl::UnavailableError("seven");
    return i == 4 ? absl::AbortedError("four") : absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(calls, 10);
}

// All of the bound are inside at once, or the wait for the last of them ends in vain.
TEST(ForEachParallelTest, HasAsManyCallsInFlightAsTheBound) {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  EXPECT_TRUE(ForEachParallel(4, 4, [&](std::size_t) {
                std::unique_lock lock(mutex);
                ++inside;
                changed.notify_all();
                const bool all =
                    changed.wait_for(lock, std::chrono::seconds(60), [&] { return inside == 4; });
                return all ? absl::OkStatus() : absl::DeadlineExceededError("alone");
              }).ok());
}

TEST(ForEachParallelTest, NeverHasMoreCallsInFlightThanTheBound) {
  std::atomic<int> inside = 0, most = 0;
  (void)ForEachParallel(200, 3, [&](std::size_t) {
    const int now = ++inside;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::yield();
    --inside;
    return absl::OkStatus();
  });
  EXPECT_LE(most, 3);
  EXPECT_GE(most, 1);
}

TEST(ForEachParallelTest, KeepsOrderAndThreadWithABoundOfOneOrLess) {
  const std::thread::id main_thread = std::this_thread::get_id();
  for (const int bound : {1, 0, -5}) {
    std::vector<std::size_t> order;
    EXPECT_TRUE(ForEachParallel(4, bound, [&](std::size_t i) {
                  order.push_back(i);
                  EXPECT_EQ(std::this_thread::get_id(), main_thread);
                  return absl::OkStatus();
                }).ok());
    EXPECT_THAT(order, ElementsAre(0, 1, 2, 3)) << bound;
  }
}

TEST(ForEachParallelTest, CallsNothingForNothing) {
  EXPECT_TRUE(
      ForEachParallel(0, 8, [](std::size_t) { return absl::InternalError("called"); }).ok());
}

}  // namespace
}  // namespace ringmaster::manager
