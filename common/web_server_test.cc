#include "common/web_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http.h"

namespace ringmaster {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(WebServerTest, ServesEachPageAtItsPathAlone) {
  const auto server =
      WebServer::Start("127.0.0.1:0", {{"/a", [] { return WebAnswer{.body = "page a"}; }}});
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->port();
  EXPECT_THAT(testing::HttpGet(port, "/a"), AllOf(HasSubstr(" 200 OK\r\n"), EndsWith("page a")));
  EXPECT_THAT(testing::HttpGet(port, "/b"), HasSubstr(" 404 "));
  EXPECT_THAT(testing::HttpGet(port, "/a/../etc/passwd"), HasSubstr(" 404 "));
}

TEST(WebServerTest, AHealthPageAnswersAsItsCheckSays) {
  absl::Status status;
  const auto server =
      WebServer::Start("127.0.0.1:0", {{"/readyz", HealthPage([&] { return status; })}});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(testing::HttpGet((*server)->port(), "/readyz"), HasSubstr(" 200 OK\r\n"));
  status = absl::UnavailableError("the caches are not full yet");
  EXPECT_THAT(testing::HttpGet((*server)->port(), "/readyz"),
              AllOf(HasSubstr(" 503 "), HasSubstr("the caches are not full yet")));
}

TEST(WebServerTest, NamesTheAddressThatIsTaken) {
  const auto first = WebServer::Start("127.0.0.1:0", {});
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string address = "127.0.0.1:" + std::to_string((*first)->port());
  const auto second = WebServer::Start(address, {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(address));
}

TEST(WebServerTest, ListensAtEveryAddressWithoutAHost) {
  for (const char* address : {":0", "[::]:0"}) {
    const auto server = WebServer::Start(address, {{"/", [] { return WebAnswer{}; }}});
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_THAT(testing::HttpGet((*server)->port(), "/"), StartsWith("HTTP/1.1 200")) << address;
  }
}

}  // namespace
}  // namespace ringmaster
