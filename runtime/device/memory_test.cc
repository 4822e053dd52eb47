#include "runtime/device/memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include <gtest/gtest.h>

namespace ringmaster::device {
namespace {

TEST(MemoryTest, BuffersAreAlignedAndZeroed) {
  const Buffer buffer(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kAlignment, 0u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(static_cast<const char*>(buffer.data())[i], 0);
}

TEST(MemoryTest, ALargeBufferBeginsWithAHugePageAndIsZeroedToItsEnd) {
  constexpr size_t kHuge = size_t{2} << 20, kBytes = 5 * kHuge + 100;
  const Buffer buffer(kBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kHuge, 0u);
  EXPECT_EQ(buffer.bytes(), kBytes);
  const char* bytes = static_cast<const char*>(buffer.data());
  for (size_t i = 0; i < kBytes; i += 99) ASSERT_EQ(bytes[i], 0);
  EXPECT_EQ(bytes[kBytes - 1], 0);
}

TEST(MemoryTest, ALargeBufferIsZeroedAgainWhereAnotherWasBefore) {
  constexpr size_t kBytes = size_t{64} << 20;
  for (int i = 0; i < 3; ++i) {
    const Buffer buffer(kBytes);
    char* bytes = static_cast<char*>(buffer.data());
    EXPECT_EQ(std::count(bytes, bytes + kBytes, 0), static_cast<std::ptrdiff_t>(kBytes));
    std::fill_n(bytes, kBytes, 'x');
  }
}

TEST(MemoryTest, AnEmptyBufferHoldsNothing) {
  EXPECT_EQ(Buffer(0).data(), nullptr);
  EXPECT_EQ(Buffer().bytes(), 0u);
}

TEST(MemoryTest, MovingKeepsTheAddress) {
  Buffer a(8);
  void* address = a.data();
  const Buffer b = std::move(a);
  EXPECT_EQ(b.data(), address);
}

TEST(MemoryTest, ASizeThatNobodyMeansIsRefused) {
  EXPECT_THROW(Buffer(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW(Buffer((size_t{1} << 40) + 1), std::bad_alloc);
}

}  // namespace
}  // namespace ringmaster::device
