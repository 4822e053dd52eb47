#include "common/heap.h"

#include <cstdio>
#include <malloc.h>
#include <memory>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

namespace ringmaster {
namespace {

constexpr std::size_t kBlock = 1000;
constexpr std::size_t kBlocks = 64'000;

std::size_t ResidentBytes() {
  long all = 0;
  long resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%ld %ld", &all, &resident) != 2) resident = 0;
  std::fclose(file);
  return static_cast<std::size_t>(resident) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(HeapTest, GivesBackWhatAThreadHasFreedBelowWhatItKeeps) {
  if (::mallinfo2().arena == 0) GTEST_SKIP() << "the allocator is a sanitizer's";
  UseHeapSparingly();
  std::unique_ptr<char[]> kept;
  std::size_t full = 0;
  std::thread worker([&] {
    std::vector<std::unique_ptr<char[]>> blocks(kBlocks);
    for (auto& block : blocks) block = std::make_unique<char[]>(kBlock);
    kept = std::make_unique<char[]>(kBlock);  // above them: the heap cannot shrink
    full = ResidentBytes();
  });
  worker.join();
  ReturnFreeMemory();
  const std::size_t after = ResidentBytes();
  EXPECT_GT(full, kBlocks * kBlock);
  EXPECT_LT(after, full - kBlocks * kBlock / 2);
}

}  // namespace
}  // namespace ringmaster
