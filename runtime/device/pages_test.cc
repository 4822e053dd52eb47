#include "runtime/device/pages.h"

#include <algorithm>
#include <cstddef>

#include <gtest/gtest.h>

namespace ringmaster::device {
namespace {

TEST(PagesTest, ABufferWhosePagesAreTakenAtOnceIsZeroedToItsEnd) {
  for (const size_t bytes : {size_t{0}, size_t{100}, size_t{3} << 20, (size_t{64} << 20) + 100}) {
    const Buffer buffer(bytes);
    TakePages(buffer);
    const char* begin = static_cast<const char*>(buffer.data());
    EXPECT_EQ(std::count(begin, begin + bytes, 0), static_cast<std::ptrdiff_t>(bytes));
  }
}

}  // namespace
}  // namespace ringmaster::device
