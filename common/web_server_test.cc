#include "common/web_server.h"

#include <vector>

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

TEST(WebServerTest, AnswersAHeadAsAGetButForTheBody) {
  absl::Status status;
  const auto server =
      WebServer::Start("127.0.0.1:0", {{"/readyz", HealthPage([&] { return status; })}});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto answer = [&](const std::string& method) {
    return testing::HttpSay(testing::ConnectTo((*server)->port()),
                            method + " /readyz HTTP/1.1\r\n\r\n");
  };
  for (const char* code : {" 200 ", " 503 "}) {
    const std::string got = answer("GET");
    EXPECT_THAT(got, HasSubstr(code));
    EXPECT_EQ(answer("HEAD"), got.substr(0, got.find("\r\n\r\n") + 4));
    status = absl::UnavailableError("not yet");
  }
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
    for (const char* host : {"127.0.0.1", "::1"}) {
      EXPECT_THAT(testing::HttpGet((*server)->port(), "/", host), StartsWith("HTTP/1.1 200"))
          << host << " of " << address;
    }
  }
}

TEST(WebServerTest, ServesAtAnIPv6AddressAlone) {
  const auto server = WebServer::Start("[::1]:0", {{"/", [] { return WebAnswer{}; }}});
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(testing::HttpGet((*server)->port(), "/", "::1"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(testing::HttpGet((*server)->port(), "/", "127.0.0.1"), "");
}

TEST(WebServerTest, ClientsThatSayNothingKeepNobodyOut) {
  const auto server = WebServer::Start("127.0.0.1:0", {{"/", [] { return WebAnswer{}; }}});
  ASSERT_TRUE(server.ok()) << server.status();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(testing::ConnectTo((*server)->port()));
  EXPECT_THAT(testing::HttpGet((*server)->port(), "/"), StartsWith("HTTP/1.1 200"));
}

TEST(WebServerTest, RefusesOtherMethodsAndWhatIsNoHttp) {
  const auto server = WebServer::Start("127.0.0.1:0", {{"/", [] { return WebAnswer{}; }}});
  ASSERT_TRUE(server.ok()) << server.status();
  const auto answer = [&](const std::string& text) {
    return testing::HttpSay(testing::ConnectTo((*server)->port()), text);
  };
  EXPECT_THAT(answer("POST / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(answer("\x16\x03\x01 garbage\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(answer(std::string(32 * 1024, 'x')), "");
  EXPECT_THAT(answer("GET /?verbose=1 HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 200"));
}

}  // namespace
}  // namespace ringmaster
