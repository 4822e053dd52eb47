#include "operator/controller/work_queue.h"

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ringmaster::controller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const ObjectKey kA{"ns", "a"};
const ObjectKey kB{"ns", "b"};

class WorkQueueTest : public ::testing::Test {
 protected:
  // Takes the next key and gives it back.
  std::optional<ObjectKey> Take() {
    auto key = queue_.TryGet();
    if (key) queue_.Done(*key);
    return key;
  }

  FakeClock clock_;
  WorkQueue queue_{clock_, {milliseconds(10), milliseconds(60)}};
};

TEST_F(WorkQueueTest, AKeyAddedTwiceComesOutOnce) {
  queue_.Add(kA);
  queue_.Add(kA);
  EXPECT_EQ(queue_.Depth(), 1u);
  EXPECT_EQ(Take(), kA);
  EXPECT_EQ(Take(), std::nullopt);
}

TEST_F(WorkQueueTest, KeysComeOutInTheOrderInWhichTheyBecameReady) {
  queue_.AddAfter(kB, milliseconds(5));
  clock_.Advance(milliseconds(5));
  EXPECT_EQ(Take(), kB);
  queue_.Add(kA);
  queue_.Add(kB);
  queue_.Add(kA);
  EXPECT_EQ(Take(), kA);
  EXPECT_EQ(Take(), kB);
}

TEST_F(WorkQueueTest, AKeyBeingWorkedOnIsNotHandedOutAgainBeforeDone) {
  queue_.Add(kA);
  ASSERT_EQ(queue_.TryGet(), kA);
  queue_.Add(kA);
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
  queue_.Done(kA);
  EXPECT_EQ(Take(), kA);
  EXPECT_EQ(Take(), std::nullopt);
}

TEST_F(WorkQueueTest, AKeyThatComesBackQueuesBehindTheOthers) {
  queue_.Add(kA);
  ASSERT_EQ(queue_.TryGet(), kA);
  queue_.Add(kA);
  queue_.Add(kB);
  queue_.Done(kA);
  EXPECT_EQ(Take(), kB);
  EXPECT_EQ(Take(), kA);
}

TEST_F(WorkQueueTest, ADelayedKeyIsNotReadyBeforeItsTime) {
  queue_.AddAfter(kA, seconds(1));
  clock_.Advance(milliseconds(999));
  EXPECT_EQ(Take(), std::nullopt);
  clock_.Advance(milliseconds(1));
  EXPECT_EQ(Take(), kA);
}

TEST_F(WorkQueueTest, OfTwoDelaysTheEarlierCounts) {
  queue_.AddAfter(kA, seconds(1));
  queue_.AddAfter(kA, seconds(9));
  queue_.AddAfter(kB, seconds(9));
  queue_.AddAfter(kB, seconds(1));
  clock_.Advance(seconds(1));
  EXPECT_EQ(Take(), kA);
  EXPECT_EQ(Take(), kB);
  clock_.Advance(seconds(10));
  EXPECT_EQ(Take(), std::nullopt);
}

TEST_F(WorkQueueTest, ADelayStaysDueThoughTheKeyCameUpEarlier) {
  queue_.AddAfter(kA, seconds(1));
  queue_.Add(kA);
  EXPECT_EQ(Take(), kA);
  clock_.Advance(seconds(1));
  EXPECT_EQ(Take(), kA);
}

TEST_F(WorkQueueTest, BackoffDoublesUpToItsMaximumAndForgetStartsOver) {
  std::vector<Duration> waits;
  for (int i = 0; i < 5; ++i) {
    const SteadyTime before = clock_.SteadyNow();
    queue_.AddRateLimited(kA);
    waits.push_back(std::chrono::duration_cast<Duration>(*queue_.NextDue() - before));
    clock_.Advance(waits.back());
    ASSERT_EQ(Take(), kA);
  }
  EXPECT_EQ(waits, (std::vector<Duration>{milliseconds(10), milliseconds(20), milliseconds(40),
                                          milliseconds(60), milliseconds(60)}));
  EXPECT_EQ(queue_.Failures(kA), 5);
  queue_.Forget(kA);
  queue_.AddRateLimited(kA);
  clock_.Advance(milliseconds(10));
  EXPECT_EQ(Take(), kA);
}

TEST_F(WorkQueueTest, BackoffDoesNotOverflowAfterManyFailures) {
  for (int i = 0; i < 200; ++i) queue_.AddRateLimited(kA);
  EXPECT_LE(*queue_.NextDue() - clock_.SteadyNow(), milliseconds(60));
}

TEST_F(WorkQueueTest, ShutDownWakesAWaitingReaderAndDropsLaterAdds) {
  std::thread reader([this] { EXPECT_EQ(queue_.Get(), std::nullopt); });
  queue_.ShutDown();
  reader.join();
  queue_.Add(kA);
  queue_.AddAfter(kA, seconds(1));
  EXPECT_EQ(queue_.Depth(), 0u);
  EXPECT_EQ(queue_.TryGet(), std::nullopt);
}

TEST(WorkQueueThreadsTest, NoKeyIsEverWorkedOnByTwoAtOnceAndNoneIsLost) {
  constexpr int kKeys = 8;
  constexpr int kRounds = 200;
  WorkQueue queue(SystemClock());
  std::vector<std::atomic<int>> inside(kKeys);
  std::vector<std::atomic<bool>> wanted(kKeys);
  std::atomic<bool> overlapped = false;
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      while (const auto key = queue.Get()) {
        const auto at = static_cast<std::size_t>(std::stoi(key->name));
        if (inside[at].fetch_add(1) != 0) overlapped = true;
        wanted[at] = false;
        inside[at].fetch_sub(1);
        queue.Done(*key);
      }
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    for (int k = 0; k < kKeys; ++k) {
      wanted[static_cast<std::size_t>(k)] = true;
      queue.Add({"", std::to_string(k)});
    }
  }
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  for (auto& flag : wanted) {
    while (flag && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_FALSE(flag);
  }
  queue.ShutDown();
  for (std::thread& worker : workers) worker.join();
  EXPECT_FALSE(overlapped);
}

TEST(WorkQueueThreadsTest, AWaitingReaderGetsADelayedKeyWhenItIsDue) {
  WorkQueue queue(SystemClock());
  queue.AddAfter(kB, std::chrono::hours(1));
  std::optional<ObjectKey> got;
  std::thread reader([&] { got = queue.Get(); });
  queue.AddAfter(kA, milliseconds(5));  // earlier than what the reader waits for
  reader.join();
  EXPECT_EQ(got, kA);
}

TEST(WorkQueueThreadsTest, EveryKeyComesWhenItIsDueWhoeverWaits) {
  constexpr int kKeys = 300;
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  WorkQueue queue(SystemClock());
  std::atomic<int> come = 0;
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      while (const auto key = queue.Get()) {
        ++come;
        queue.Done(*key);
      }
    });
  }
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  for (int batch = 0; batch < 20; ++batch) {
    for (int k = 0; k < kKeys / 20; ++k) {
      const ObjectKey key{std::to_string(batch), std::to_string(k)};
      queue.AddAfter(key, std::chrono::microseconds(random() % 4000));
    }
    // Once with all readers at rest, once in the middle of their work.
    const int expected = batch % 2 == 0 ? (batch + 1) * (kKeys / 20) : 0;
    while (come < expected && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  }
  while (come < kKeys && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(come, kKeys);
  queue.ShutDown();
  for (std::thread& worker : workers) worker.join();
}

}  // namespace
}  // namespace ringmaster::controller
