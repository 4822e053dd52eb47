#include "common/base64.h"

#include <gtest/gtest.h>

namespace ringmaster {
namespace {

TEST(Base64Test, EncodesAndDecodesEveryLength) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    const auto decoded = DecodeBase64(EncodeBase64(bytes));
    ASSERT_TRUE(decoded.ok()) << i;
    ASSERT_EQ(*decoded, bytes);
    bytes += static_cast<char>(i * 7);
  }
}

TEST(Base64Test, WritesWhatOthersWrite) {
  EXPECT_EQ(EncodeBase64("Many hands"), "TWFueSBoYW5kcw==");
  EXPECT_EQ(EncodeBase64("\xff\xfe\xfd"), "//79");
}

TEST(Base64Test, TakesLineEndsAndMissingPadding) {
  EXPECT_EQ(*DecodeBase64("TWFu\r\neSBo\nYW5kcw\n"), "Many hands");
}

TEST(Base64Test, RefusesOtherCharactersAndHalfAByte) {
  EXPECT_FALSE(DecodeBase64("TW*u").ok());
  EXPECT_FALSE(DecodeBase64("TWFuT").ok());
  EXPECT_FALSE(DecodeBase64("TW=u").ok());
}

}  // namespace
}  // namespace ringmaster
