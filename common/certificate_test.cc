#include "common/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster {
namespace {

using ::testing::HasSubstr;

TEST(CertificateTest, IsValidForItsLifetime) {
  const Time now = FakeClock().Now();
  const auto made = SelfSignedCertificate("a.example", now, std::chrono::hours(24));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->certificate_pem, HasSubstr("BEGIN CERTIFICATE"));
  EXPECT_THAT(made->key_pem, HasSubstr("PRIVATE KEY"));
  EXPECT_EQ(*ExpiryOf(made->certificate_pem), now + std::chrono::hours(24));
  EXPECT_FALSE(ExpiryOf("nothing").ok());
}

TEST(CertificateTest, NoTwoAreTheSame) {
  const Time now = FakeClock().Now();
  EXPECT_NE(SelfSignedCertificate("a", now, std::chrono::hours(1))->key_pem,
            SelfSignedCertificate("a", now, std::chrono::hours(1))->key_pem);
}

}  // namespace
}  // namespace ringmaster
