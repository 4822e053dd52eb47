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

}  // namespace
}  // namespace ringmaster
