#include "runtime/device/pages.h"

#include <algorithm>
#include <cstddef>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

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

// How many of the first ones, of 4096 bytes, the system has given.
ptrdiff_t PagesGiven(const Buffer& buffer, size_t pages) {
  std::vector<unsigned char> given(pages);
  EXPECT_EQ(mincore(buffer.data(), pages * 4096, given.data()), 0);
  return std::ranges::count_if(given, [](unsigned char page) { return (page & 1) != 0; });
}

TEST(PagesTest, ALargeBufferHasNoneUntilTheyAreTaken) {
  if (sysconf(_SC_PAGESIZE) != 4096) GTEST_SKIP() << "this machine has pages of another size";
  constexpr size_t kPages = kHugePage / 4096;
  const Buffer buffer(8 * kHugePage);
  EXPECT_EQ(PagesGiven(buffer, kPages), 0);
  TakePages(buffer);
  EXPECT_EQ(PagesGiven(buffer, kPages), static_cast<ptrdiff_t>(kPages));  // the others if soon
}

}  // namespace
}  // namespace ringmaster::device
