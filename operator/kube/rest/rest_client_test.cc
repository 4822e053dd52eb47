// What a call of the REST client is made of: paths, tokens, pages, its rate. What a good server
// does is in the conformance suite.
#include "operator/kube/rest/rest_client.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/object.h"
#include "tests/support/rest_client_fixture.h"
#include "tests/support/scripted_http_server.h"

namespace ringmaster::kube::rest {
namespace {

using std::chrono_literals::operator""ms;
using ringmaster::testing::Answer;
using ringmaster::testing::ServedRequest;
using ::testing::HasSubstr;
using testing::kKey;
using ::testing::Not;
using testing::Object;
using testing::RestClientTest;
using testing::Stall;
using testing::StatusAnswer;

TEST_F(RestClientTest, SendsNoPathThatWouldBreakTheRequest) {
  const auto status = Connect()->GetPath("/version HTTP/1.1\r\nX-Admin: yes").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(server_.requests().empty());
}

class CountedToken : public CredentialSource {
 public:
  absl::StatusOr<Credentials> Get() override {
    return Credentials{.bearer_token = fmt::format("token-{}", version_.load())};
  }
  void Refused(const Credentials& refused) override {
    EXPECT_EQ(refused.bearer_token, fmt::format("token-{}", version_.load()));
    ++version_;
  }

 private:
  std::atomic<int> version_{1};
};

TEST_F(RestClientTest, AsksForAnotherTokenWhenOneIsRefused) {
  server_.Script({StatusAnswer(401, "Unauthorized"), Object()});
  const auto client = RestClient::Connect(
      {.server = server_.url(), .credentials = std::make_shared<CountedToken>()}, Quick());
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE((*client)->Get(kPod, kKey).ok());
  EXPECT_EQ(server_.requests()[1].headers.at("authorization"), "Bearer token-2");
  server_.Otherwise(StatusAnswer(401, "Unauthorized"));
  EXPECT_EQ((*client)->Get(kPod, kKey).status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(server_.requests().size(), 4u);
}

TEST_F(RestClientTest, SendsNoTokenThatWouldBreakTheHeader) {
  const auto client =
      RestClient::Connect({.server = server_.url(),
                           .credentials = StaticCredentials({.bearer_token = "a\r\nX-Admin: yes"})},
                          Quick());
  ASSERT_TRUE(client.ok());
  EXPECT_EQ((*client)->Get(kPod, kKey).status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(RestClientTest, SlowsDownToItsRate) {
  RestOptions options = Quick();
  options.qps = 20;
  options.burst = 1;
  server_.Otherwise(Object());
  const auto client = Connect(options);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client->Get(kPod, kKey).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 200ms);
}

TEST_F(RestClientTest, StopEndsACallThatWaits) {
  std::atomic<bool> asked{false};
  server_.Otherwise([&](ServedRequest& request) {
    asked = true;
    Stall(request);
  });
  const auto client = Connect();
  std::thread stopper([&] {
    while (!asked) std::this_thread::yield();
    client->Stop();
  });
  const auto status = client->Get(kPod, kKey).status();
  stopper.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_EQ(client->Get(kPod, kKey).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(RestClientTest, JoinsThePagesOfAList) {
  RestOptions options = Quick();
  options.page_size = 2;
  const auto page = [](std::vector<std::string> names, const std::string& token) {
    Json list = {{"metadata", {{"resourceVersion", "7"}, {"continue", token}}},
                 {"items", Json::array()}};
    for (const std::string& name : names) list["items"].push_back({{"metadata", {{"name", name}}}});
    return Answer(200, list.dump());
  };
  server_.Script({page({"a", "b"}, "x/y+"), page({"c"}, "")});
  const auto client = Connect(options);
  const auto list = client->List(kPod, "default", {.label_selector = "a in (b,c)"});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->items.size(), 3u);
  EXPECT_EQ(list->resource_version, "7");
  EXPECT_EQ(FindString(*list->items[2], {"kind"}), "Pod");
  EXPECT_EQ(server_.requests()[0].target,
            "/api/v1/namespaces/default/pods?labelSelector=a%20in%20%28b%2Cc%29&limit=2");
  EXPECT_THAT(server_.requests()[1].target, HasSubstr("continue=x%2Fy%2B"));
  // The moment is forgotten between two pages.
  server_.Script({page({"a", "b"}, "x"), StatusAnswer(410, "Expired"), page({"a", "b", "c"}, "")});
  const auto again = client->List(kPod, "default", {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->items.size(), 3u);
}

TEST_F(RestClientTest, ReviewsATokenForOneAudience) {
  const auto review = [](const Json& audiences, const Json& extra) {
    const Json user = {{"username", "system:serviceaccount:blue:worker"}, {"extra", extra}};
    return Answer(
        201, Json({{"status", {{"authenticated", true}, {"audiences", audiences}, {"user", user}}}})
                 .dump());
  };
  const Json bound = {{"authentication.kubernetes.io/pod-name", Json::array({"digits-0-0"})},
                      {"authentication.kubernetes.io/pod-uid", Json::array({"u-1"})}};
  const auto client = Connect();
  server_.Script({review({"ringmaster"}, bound), review({"https://kubernetes"}, bound),
                  review({"ringmaster"}, Json::object()),
                  Answer(201, R"({"status": {"authenticated": false, "error": "bad"}})")});
  const auto identity = client->ReviewToken("theirs", "ringmaster");
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->pod, (ObjectKey{"blue", "digits-0-0"}));
  EXPECT_EQ(identity->uid, "u-1");
  for (int i = 0; i < 3; ++i) {
    const auto status = client->ReviewToken("theirs", "ringmaster").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << status;
    EXPECT_THAT(status.ToString(), Not(HasSubstr("theirs")));
  }
  // Not to be known oneself says nothing of the token.
  server_.Otherwise(StatusAnswer(401, "Unauthorized"));
  EXPECT_EQ(client->ReviewToken("theirs", "ringmaster").status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(RestConnectTest, RefusesWhatCannotWork) {
  for (const char* server :
       {"", "127.0.0.1:6443", "ftp://a", "https://", "https://a:0", "https://a:99999",
        "https://[fd00::1", "https://u:p@a", "https://a?b", "https://a b"}) {
    const auto client = RestClient::Connect({.server = server}, {});
    EXPECT_EQ(client.status().code(), absl::StatusCode::kInvalidArgument) << server;
    EXPECT_THAT(client.status().ToString(), Not(HasSubstr("u:p")));
  }
  EXPECT_EQ(RestClient::Connect({.server = "https://a", .ca_pem = "no PEM"}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  RestOptions options;
  options.attempt_timeout = 0ms;
  EXPECT_EQ(RestClient::Connect({.server = "https://a"}, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ringmaster::kube::rest
