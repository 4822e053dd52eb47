// The REST client against a server that answers badly, late or not at all.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/errors.h"
#include "operator/kube/object.h"
#include "operator/kube/rest/rest_client.h"
#include "operator/kube/rest/server_clock.h"
#include "tests/support/rest_client_fixture.h"
#include "tests/support/scripted_http_server.h"

namespace ringmaster::kube::rest {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ringmaster::testing::Answer;
using ringmaster::testing::HttpScript;
using ringmaster::testing::ScriptedHttpServer;
using ringmaster::testing::ServedRequest;
using testing::kKey;
using testing::kPatience;
using testing::Object;
using testing::Pod;
using testing::RestClientTest;
using testing::Stall;
using testing::StatusAnswer;

TEST_F(RestClientTest, TakesHalfAnAnswerForABrokenConnection) {
  const HttpScript half = [](ServedRequest& request) {
    request.Send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"kind\": \"P");
    request.Close();
  };
  server_.Script({half, Object()});
  const auto found = Connect()->Get(kPod, kKey);
  EXPECT_TRUE(found.ok()) << found.status();
  RestOptions once = Quick();
  once.max_attempts = 1;
  server_.Script({half});
  const auto status = Connect(once)->Get(kPod, kKey).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  ExpectNoSecret(status);
}

TEST_F(RestClientTest, GivesUpOnAServerThatSaysNothing) {
  RestOptions options = Quick();
  options.attempt_timeout = 100ms;
  options.max_attempts = 2;
  server_.Otherwise(Stall);
  const auto begin = std::chrono::steady_clock::now();
  const auto status = Connect(options)->Get(kPod, kKey).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_EQ(server_.AwaitRequests(2, kPatience), 2u);
  ExpectNoSecret(status);
}

TEST_F(RestClientTest, GivesUpOnAServerThatSendsOneByteAtATime) {
  RestOptions options = Quick();
  options.attempt_timeout = 300ms;
  options.max_attempts = 1;
  server_.Otherwise([](ServedRequest& request) {
    request.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (!request.AwaitClosed(20ms) && request.Send("1\r\n \r\n")) continue;
    request.Close();
  });
  const auto status = Connect(options)->Get(kPod, kKey).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

TEST_F(RestClientTest, GivesUpOnAServerThatNeverStopsSending) {
  RestOptions options = Quick();
  options.attempt_timeout = 300ms;
  options.max_attempts = 1;
  server_.Otherwise([](ServedRequest& request) {
    request.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    // Many bytes, little text: what ends it is not the bound of the body.
    const std::string chunk = "1;" + std::string(4000, 'x') + "\r\n \r\n";
    while (request.Send(chunk)) continue;
    request.Close();
  });
  const auto status = Connect(options)->Get(kPod, kKey).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
}

TEST_F(RestClientTest, WaitsAsLongAsTheServerAsks) {
  server_.Script({StatusAnswer(429, "TooManyRequests", "Retry-After: 1\r\n"), Object()});
  const auto begin = std::chrono::steady_clock::now();
  const auto found = Connect()->Get(kPod, kKey);
  EXPECT_TRUE(found.ok()) << found.status();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 1s);
}

TEST_F(RestClientTest, DoesNotWaitBeyondItsDeadline) {
  const RestOptions options = Quick();
  server_.Otherwise(StatusAnswer(429, "TooManyRequests", "Retry-After: 60\r\n"));
  const auto status = Connect(options)->Get(kPod, kKey).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(RestClientTest, TriesServerErrorsAgainAndThenReportsThem) {
  server_.Script({Answer(502, "<html>bad gateway</html>"), Answer(503, ""), Object()});
  EXPECT_TRUE(Connect()->Get(kPod, kKey).ok());
  server_.Otherwise(StatusAnswer(500, "InternalError"));
  const std::size_t before = server_.requests().size();
  const auto status = Connect()->Get(kPod, kKey).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(Reason(status), kReasonInternalError);
  EXPECT_EQ(server_.requests().size() - before, static_cast<std::size_t>(Quick().max_attempts));
}

TEST_F(RestClientTest, DoesNotRepeatWhatTheServerRefused) {
  server_.Otherwise(StatusAnswer(422, "Invalid"));
  const auto status = Connect()->Create(kPod, Pod("a")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Reason(status), kReasonInvalid);
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(RestClientTest, TellsAClockTheTimeThatAnAnswerOfTheServerCarries) {
  server_.Script(
      {StatusAnswer(429, "TooManyRequests", "Date: Mon, 04 Jan 2100 12:00:00 GMT\r\n"), Object()});
  ServerClock clock;
  RestOptions options = Quick();
  options.server_clock = &clock;
  ASSERT_TRUE(Connect(options)->Get(kPod, kKey).ok());
  EXPECT_EQ(FormatTime(clock.Now()).substr(0, 13), "2100-01-04T12");
}

TEST_F(RestClientTest, TellsAClockNothingOfAnAnswerThatAGatewayMayHaveMade) {
  for (const int code : {502, 503, 504}) {
    server_.Script(
        {StatusAnswer(code, "Unavailable", "Date: Mon, 04 Jan 2100 12:00:00 GMT\r\n"), Object()});
    ServerClock clock;
    RestOptions options = Quick();
    options.server_clock = &clock;
    ASSERT_TRUE(Connect(options)->Get(kPod, kKey).ok()) << code;
    EXPECT_NE(FormatTime(clock.Now()).substr(0, 4), "2100") << code;
  }
}

TEST_F(RestClientTest, TakesGarbageForABrokenAnswer) {
  RestOptions options = Quick();
  options.max_attempts = 1;
  const auto client = Connect(options);
  for (const char* bytes :
       {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n<<<", "SSH-2.0-OpenSSH_9\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nab\r\n", "\r\n\r\n\r\n\r\n"}) {
    server_.Script({[bytes](ServedRequest& request) {
      request.Send(bytes);
      request.Close();
    }});
    const auto status = client->Get(kPod, kKey).status();
    EXPECT_THAT(status.code(), ::testing::AnyOf(absl::StatusCode::kUnavailable,
                                                absl::StatusCode::kResourceExhausted))
        << bytes << ": " << status;
  }
}

TEST_F(RestClientTest, RefusesABodyOverItsBound) {
  RestOptions options = Quick();
  options.max_body_bytes = 1000;
  server_.Otherwise(Answer(200, std::string(5000, ' ')));
  const auto status = Connect(options)->Get(kPod, kKey).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(RestClientTest, FollowsNoRedirection) {
  ScriptedHttpServer elsewhere;
  server_.Otherwise(Answer(302, "", "Location: " + elsewhere.url() + "/steal\r\n"));
  const auto status = Connect()->Get(kPod, kKey).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_TRUE(elsewhere.requests().empty());
}

TEST_F(RestClientTest, BelievesOfAPathThatIsNotServedTheServerAlone) {
  server_.Script({Answer(404, "404 page not found\n"),
                  Answer(404, "404 page not found\n", "audit-id: 0b5e6a2c\r\n")});
  const auto client = Connect();
  EXPECT_EQ(client->List(kPod, "", {}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(client->List(kPod, "", {}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(RestClientTest, TakesNothingForDeletedOrInvalidThatALoadBalancerSaysSo) {
  const auto client = Connect();
  for (const int code : {302, 400, 404, 405, 422}) {
    server_.Otherwise(Answer(code, "<html>no</html>", "Content-Type: text/html\r\n"));
    for (const auto& status : {client->Create(kPod, Pod("a")).status(),
                               client->Delete(kPod, kKey, {}), client->Get(kLease, kKey).status(),
                               client->PatchStatus(kPod, kKey, Json::object(), "1").status()})
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << code << ": " << status;
  }
}

}  // namespace
}  // namespace ringmaster::kube::rest
