// What lives in memory that calls of oneDNN keep, and for how long.
#include "runtime/kernels/onednn/call_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ringmaster::kernels::onednn {
namespace {

constexpr size_t kBytes = 200;

TEST(CallMemoryTest, ThereIsNoneOutsideOfACall) {
  EXPECT_EQ(TakeCallMemory(kBytes), nullptr);
  {
    const CallMemory memory;
    void* const block = TakeCallMemory(kBytes);
    EXPECT_NE(block, nullptr);
    EXPECT_TRUE(FreeCallMemory(block));
  }
  EXPECT_EQ(TakeCallMemory(kBytes), nullptr);
}

TEST(CallMemoryTest, WhatTheHeapGaveIsLeftToIt) {
  const std::vector<std::byte> of_the_heap(kBytes);
  EXPECT_FALSE(FreeCallMemory(of_the_heap.data()));
  EXPECT_FALSE(FreeCallMemory(nullptr));
}

TEST(CallMemoryTest, ABlockThatOutlivesItsCallKeepsItsBytesWhileOthersComeAndGo) {
  void* kept = nullptr;
  {
    const CallMemory memory;
    kept = TakeCallMemory(kBytes);
    ASSERT_NE(kept, nullptr);
    std::memset(kept, 0x5A, kBytes);
  }
  for (int call = 0; call < 1000; ++call) {
    const CallMemory memory;
    void* const one = TakeCallMemory(kBytes);
    void* const other = TakeCallMemory(kBytes);
    ASSERT_NE(one, nullptr);
    ASSERT_NE(other, nullptr);
    std::memset(one, 0, kBytes);
    std::memset(other, 0, kBytes);
    EXPECT_TRUE(FreeCallMemory(one));
    EXPECT_TRUE(FreeCallMemory(other));
  }
  const auto* const bytes = static_cast<const unsigned char*>(kept);
  EXPECT_TRUE(std::all_of(bytes, bytes + kBytes, [](unsigned char byte) { return byte == 0x5A; }));
  EXPECT_TRUE(FreeCallMemory(kept));
}

TEST(CallMemoryTest, WhatAnotherThreadFreesServesLaterCalls) {
  for (int round = 0; round < 1000; ++round) {
    std::vector<void*> blocks;
    {
      const CallMemory memory;
      for (int i = 0; i < 10; ++i) blocks.push_back(TakeCallMemory(kBytes));
    }
    std::thread([&] {
      for (void* const block : blocks) ASSERT_TRUE(FreeCallMemory(block));
    }).join();
  }
}

TEST(CallMemoryTest, ALargeBlockComesFromTheHeap) {
  const CallMemory memory;
  EXPECT_EQ(TakeCallMemory(size_t{1} << 20), nullptr);
}

// Block after block, none of which is freed, until there is no more.
TEST(CallMemoryTest, AThreadThatFindsNoneTakesFromTheHeapAndOthersHaveAllOnceItIsFree) {
  std::vector<void*> blocks;
  std::thread([&] {
    const CallMemory memory;
    while (void* const block = TakeCallMemory(kBytes)) blocks.push_back(block);
    EXPECT_GT(blocks.size(), static_cast<size_t>(kSlabs));
  }).join();
  std::thread([] {
    const CallMemory memory;
    EXPECT_EQ(TakeCallMemory(kBytes), nullptr);
  }).join();
  for (void* const block : blocks) EXPECT_TRUE(FreeCallMemory(block));
  std::thread([] {
    const CallMemory memory;
    EXPECT_TRUE(FreeCallMemory(TakeCallMemory(kBytes)));
  }).join();
}

TEST(CallMemoryTest, AThreadThatEndsLeavesItsMemoryToOthers) {
  for (int i = 0; i < 2 * kSlabs; ++i) {
    std::thread([] {
      const CallMemory memory;
      EXPECT_TRUE(FreeCallMemory(TakeCallMemory(kBytes)));
    }).join();
  }
}

// Made before the thread first needs memory for a call, so that it goes after that was given back.
struct AsksAtItsEnd {
  std::vector<void*>* answers;
  ~AsksAtItsEnd() {
    const CallMemory memory;
    answers->push_back(TakeCallMemory(kBytes));
  }
};

TEST(CallMemoryTest, WhatAThreadAsksForWhileItEndsComesFromTheHeap) {
  std::vector<void*> answers;
  std::thread([&] {
    static thread_local AsksAtItsEnd asks{nullptr};
    asks.answers = &answers;
    const CallMemory memory;
    EXPECT_TRUE(FreeCallMemory(TakeCallMemory(kBytes)));
  }).join();
  EXPECT_EQ(answers, std::vector<void*>{nullptr});
}

TEST(CallMemoryTest, TheTeamsThreadsHaveSomeInACallAlone) {
  int missing = 0, outside = 0, threads = 0;
#pragma omp parallel num_threads(2) reduction(+ : outside, threads)
  {
    ++threads;
    outside += TakeCallMemory(kBytes) != nullptr ? 1 : 0;
  }
  ASSERT_EQ(threads, 2);
  EXPECT_EQ(outside, 0);
  const CallMemory memory;
#pragma omp parallel num_threads(2) reduction(+ : missing)
  missing += FreeCallMemory(TakeCallMemory(kBytes)) ? 0 : 1;
  EXPECT_EQ(missing, 0);
}

}  // namespace
}  // namespace ringmaster::kernels::onednn
