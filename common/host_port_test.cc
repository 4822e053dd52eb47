#include "common/host_port.h"

#include <gtest/gtest.h>

#include "common/status.h"

namespace ringmaster {
namespace {

TEST(HostPortTest, SplitsAtTheLastColon) {
  EXPECT_EQ(ParseHostPort("127.0.0.1:7470")->host, "127.0.0.1");
  EXPECT_EQ(ParseHostPort("127.0.0.1:7470")->port, 7470);
  EXPECT_EQ(ParseHostPort("[::1]:0")->host, "::1");
}

TEST(HostPortTest, AnythingElseIsRefusedWithAnExample) {
  for (const char* text : {"", "foo", ":80", "127.0.0.1:", "127.0.0.1:8x", "127.0.0.1:65536",
                           "127.0.0.1:-1", "7470"}) {
    const auto parts = ParseHostPort(text);
    EXPECT_EQ(parts.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(Message(parts.status()).find("127.0.0.1:7470"), std::string::npos) << text;
  }
}

TEST(HostPortTest, AnAddressOfIpv6IsJoinedInBracketsOnce) {
  EXPECT_EQ(JoinHostPort("10.0.0.7", 7473), "10.0.0.7:7473");
  EXPECT_EQ(JoinHostPort("operator.default.svc", 7470), "operator.default.svc:7470");
  EXPECT_EQ(JoinHostPort("fd00::7", 7473), "[fd00::7]:7473");
  EXPECT_EQ(JoinHostPort("[fd00::7]", 7473), "[fd00::7]:7473");
}

TEST(HostPortTest, OnlyNumbersAreANumericAddress) {
  for (const char* text : {"10.0.0.7:7473", "[fd00::7]:1", "[::ffff:10.0.0.7]:65535"})
    EXPECT_TRUE(IsNumericHostPort(text)) << text;
  for (const char* text : {"", "10.0.0.7", "localhost:7473", "10.0.0.7:0", "10.0.0.256:7473",
                           "fd00::7:7473", "[10.0.0.7]:7473", "[fe80::1%eth0]:7473", "[::1:80"})
    EXPECT_FALSE(IsNumericHostPort(text)) << text;
}

TEST(HostPortTest, ANumericAddressHasABoundedLength) {
  EXPECT_TRUE(IsNumericHostPort("[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535"));
  EXPECT_FALSE(IsNumericHostPort("10.0.0.7:" + std::string(1000, '0') + "7473"));
  EXPECT_FALSE(IsNumericHostPort(std::string_view("10.0.0.7\0 x:7473", 16)));
}

}  // namespace
}  // namespace ringmaster
