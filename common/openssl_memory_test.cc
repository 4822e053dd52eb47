// What OpenSSL takes from the heap in programs that train (openssl_memory.cc).
#include <algorithm>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/crypto.h>
#include <openssl/err.h>

#include "common/count_allocations.h"

namespace ringmaster {
namespace {

class OpenSslMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kCountsMalloc) GTEST_SKIP() << "a sanitizer's build leaves OpenSSL the heap";
  }
};

std::span<unsigned char> BytesOf(void* block, size_t bytes) {
  return {static_cast<unsigned char*>(block), bytes};
}

TEST_F(OpenSslMemoryTest, TakesSmallBlocksFromTheHeapOnce) {
  int64_t before = 0;
  for (int i = 0; i < 100; ++i) {
    if (i == 1) before = CountAllocations();
    void* const one = OPENSSL_malloc(40);
    void* const other = OPENSSL_zalloc(64);
    ASSERT_NE(one, other);
    std::ranges::fill(BytesOf(one, 40), 1);
    EXPECT_TRUE(std::ranges::all_of(BytesOf(other, 64), [](auto byte) { return byte == 0; }));
    std::ranges::fill(BytesOf(other, 64), 2);
    OPENSSL_free(one);
    OPENSSL_free(other);
  }
  EXPECT_EQ(CountAllocations() - before, 0);
}

TEST_F(OpenSslMemoryTest, TakesLargeBlocksFromTheHeapEachTime) {
  const int64_t before = CountAllocations();
  for (int i = 0; i < 5; ++i) OPENSSL_free(OPENSSL_malloc(65));
  EXPECT_EQ(CountAllocations() - before, 5);
}

TEST_F(OpenSslMemoryTest, KeepsNoMoreThanAFewBlocks) {
  std::vector<void*> blocks(100);
  const auto take_all = [&] {
    for (void*& block : blocks) block = OPENSSL_malloc(8);
    for (void* const block : blocks) OPENSSL_free(block);
  };
  take_all();
  const int64_t before = CountAllocations();
  take_all();
  EXPECT_EQ(CountAllocations() - before, 100 - 16);
}

TEST_F(OpenSslMemoryTest, ABlockThatGrowsKeepsItsBytes) {
  void* block = OPENSSL_realloc(nullptr, 3);
  std::ranges::fill(BytesOf(block, 3), 7);
  for (const size_t bytes : {size_t{40}, size_t{64}, size_t{65}, size_t{5000}, size_t{20}}) {
    block = OPENSSL_realloc(block, bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(std::ranges::all_of(BytesOf(block, 3), [](auto byte) { return byte == 7; }))
        << bytes;
  }
  EXPECT_EQ(OPENSSL_realloc(block, 0), nullptr);
  EXPECT_EQ(OPENSSL_malloc(0), nullptr);
  OPENSSL_free(nullptr);
}

// OpenSSL keeps a thread's errors until after the thread's own objects are gone.
TEST_F(OpenSslMemoryTest, ThreadsComeAndGoWithBlocksOfOthers) {
  for (int i = 0; i < 20; ++i) {
    void* const mine = OPENSSL_malloc(40);
    void* theirs = nullptr;
    std::thread([&] {
      ERR_raise(ERR_LIB_USER, 1);
      theirs = OPENSSL_malloc(24);
      OPENSSL_free(mine);
    }).join();
    OPENSSL_free(theirs);
  }
}

}  // namespace
}  // namespace ringmaster
