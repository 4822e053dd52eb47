// The REST client against a server that answers badly. What a good server does is in the
// conformance suite.
#include "operator/kube/rest/rest_client.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/errors.h"
#include "operator/kube/object.h"
#include "operator/kube/rest/server_clock.h"
#include "tests/support/scripted_http_server.h"

namespace ringmaster::kube::rest {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ringmaster::testing::Answer;
using ringmaster::testing::HttpScript;
using ringmaster::testing::ScriptedHttpServer;
using ringmaster::testing::ServedRequest;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kToken[] = "very-secret-token";
constexpr std::chrono::seconds kPatience{20};
const ObjectKey kKey{"default", "a"};

std::string StatusBody(int code, const std::string& reason, const std::string& message) {
  return Json({{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}})
      .dump();
}

HttpScript StatusAnswer(int code, const std::string& reason, const std::string& headers = "") {
  return Answer(code, StatusBody(code, reason, "as the test wants"), headers);
}

Json Pod(const std::string& name) {
  return NewObject(kPod, {"default", name});
}

HttpScript Object(const std::string& name = "a") {
  return Answer(200, Pod(name).dump());
}

// Takes the request and says nothing until the client has gone.
void Stall(ServedRequest& request) {
  request.AwaitClosed(kPatience);
  request.Close();
}

void Break(ServedRequest& request) {
  request.Reset();
}

class Fixture : public ::testing::Test {
 protected:
  static RestOptions Quick() {
    RestOptions options;
    options.attempt_timeout = 10s;
    options.call_timeout = 20s;
    options.first_backoff = 1ms;
    options.max_backoff = 5ms;
    options.qps = 0;
    return options;
  }

  std::unique_ptr<RestClient> Connect(const RestOptions& options = Quick()) {
    Config config{.server = server_.url(),
                  .credentials = StaticCredentials({.bearer_token = kToken})};
    auto client = RestClient::Connect(std::move(config), options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  static void ExpectNoSecret(const absl::Status& status) {
    EXPECT_THAT(status.ToString(), Not(HasSubstr(kToken)));
  }

  int Connections() const {
    int last = 0;
    for (const auto& request : server_.requests()) last = std::max(last, request.connection);
    return last;
  }

  ScriptedHttpServer server_;
};

using RestClientTest = Fixture;

TEST_F(RestClientTest, SendsTheTokenAndKeepsTheConnection) {
  server_.Otherwise(Object());
  const auto client = Connect();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client->Get(kPod, kKey).ok());
  const auto requests = server_.requests();
  ASSERT_EQ(requests.size(), 20u);
  EXPECT_EQ(requests[0].method, "GET");
  EXPECT_EQ(requests[0].target, "/api/v1/namespaces/default/pods/a");
  EXPECT_EQ(requests[0].headers.at("authorization"), std::string("Bearer ") + kToken);
  EXPECT_EQ(requests[0].headers.at("host"), fmt::format("127.0.0.1:{}", server_.port()));
  EXPECT_EQ(Connections(), 1);
}

TEST_F(RestClientTest, KeepsTheConnectionsOfCallsThatWereUnderWayAtOnce) {
  constexpr int kAtOnce = 3;
  std::atomic<int> arrived{0};
  server_.Otherwise([&](ServedRequest& request) {
    ++arrived;
    while (arrived < kAtOnce) std::this_thread::yield();
    Object()(request);
  });
  const auto client = Connect();
  std::vector<std::thread> callers;
  for (int i = 0; i < kAtOnce; ++i)
    callers.emplace_back([&] { EXPECT_TRUE(client->Get(kPod, kKey).ok()); });
  for (std::thread& caller : callers) caller.join();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(client->Get(kPod, kKey).ok());
  EXPECT_EQ(Connections(), kAtOnce);
}

TEST_F(RestClientTest, SendsNoPathThatWouldBreakTheRequest) {
  const auto status = Connect()->GetPath("/version HTTP/1.1\r\nX-Admin: yes").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(RestClientTest, ReachesAnIPv6Address) {
  ScriptedHttpServer server("::1");
  server.Otherwise(Object());
  const auto client = RestClient::Connect({.server = server.url() + "/clusters/x/"}, Quick());
  ASSERT_TRUE(client.ok()) << client.status();
  const auto found = (*client)->Get(kPod, kKey);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(server.requests()[0].headers.at("host"), fmt::format("[::1]:{}", server.port()));
  EXPECT_EQ(server.requests()[0].target, "/clusters/x/api/v1/namespaces/default/pods/a");
}

TEST_F(RestClientTest, ReplacesAKeptConnectionThatTheServerHasClosed) {
  const HttpScript answer_and_close = [](ServedRequest& request) {
    Object()(request);
    request.Close();
  };
  server_.Otherwise(answer_and_close);
  const auto client = Connect();
  for (int i = 0; i < 4; ++i) {
    const auto found = client->Get(kPod, kKey);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_TRUE(client->Update(kPod, Pod("a")).ok());
  }
  EXPECT_EQ(server_.requests().size(), 8u);
  EXPECT_EQ(Connections(), 8);
}

TEST_F(RestClientTest, MakesACallAgainWhoseConnectionBroke) {
  server_.Script({Break, Break, Object()});
  const auto found = Connect()->Get(kPod, kKey);
  EXPECT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(server_.requests().size(), 3u);
}

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

TEST_F(RestClientTest, SaysThatNobodyListens) {
  int port = 0;
  {
    ScriptedHttpServer gone;
    port = gone.port();
  }
  const auto client =
      RestClient::Connect({.server = fmt::format("http://127.0.0.1:{}", port)}, Quick());
  ASSERT_TRUE(client.ok());
  const auto status = (*client)->Get(kPod, kKey).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.ToString(), HasSubstr(fmt::format("127.0.0.1:{}", port)));
}

TEST_F(RestClientTest, RepeatsACreateOnlyWhereItsNameIsGiven) {
  server_.Script({Break, StatusAnswer(409, "AlreadyExists")});
  const auto client = Connect();
  EXPECT_EQ(client->Create(kPod, Pod("a")).status().code(), absl::StatusCode::kAlreadyExists);
  Json unnamed = Pod("");
  unnamed["metadata"].erase("name");
  unnamed["metadata"]["generateName"] = "a-";
  server_.Script({Break, Object()});
  const std::size_t before = server_.requests().size();
  EXPECT_EQ(client->Create(kPod, unnamed).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(server_.requests().size() - before, 1u);
}

TEST_F(RestClientTest, MakesUpNoSecondNameWhenAKeptConnectionEnds) {
  const auto client = Connect();
  server_.Script({Object(), [](ServedRequest& request) { request.Close(); }, Object()});
  ASSERT_TRUE(client->Get(kPod, kKey).ok());
  Json unnamed = Pod("");
  unnamed["metadata"].erase("name");
  unnamed["metadata"]["generateName"] = "a-";
  EXPECT_EQ(client->Create(kPod, unnamed).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(server_.requests().size(), 2u);
}

TEST_F(RestClientTest, SendsNothingOverAKeptConnectionThatTheServerIsKnownToHaveClosed) {
  const auto client = Connect();
  std::promise<void> closed;
  server_.Script({[&](ServedRequest& request) {
                    Object()(request);
                    request.Close();
                    closed.set_value();
                  },
                  Object()});
  ASSERT_TRUE(client->Get(kPod, kKey).ok());
  ASSERT_EQ(closed.get_future().wait_for(kPatience), std::future_status::ready);
  Json unnamed = Pod("");  // a call that is not made twice
  unnamed["metadata"].erase("name");
  unnamed["metadata"]["generateName"] = "a-";
  const auto created = client->Create(kPod, unnamed);
  EXPECT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(Connections(), 2);
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
