#include "common/text.h"

#include <gtest/gtest.h>

namespace ringmaster {
namespace {

TEST(TextTest, ThousandsAreSetApart) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(61514), "61,514");
  EXPECT_EQ(WithCommas(-1234567), "-1,234,567");
  EXPECT_EQ(WithCommas(-123), "-123");
}

}  // namespace
}  // namespace ringmaster
