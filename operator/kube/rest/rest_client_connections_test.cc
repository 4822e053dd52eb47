// Which connections the REST client keeps, replaces and does without.
#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/object.h"
#include "operator/kube/rest/rest_client.h"
#include "tests/support/rest_client_fixture.h"
#include "tests/support/scripted_http_server.h"

namespace ringmaster::kube::rest {
namespace {

using ringmaster::testing::HttpScript;
using ringmaster::testing::ScriptedHttpServer;
using ringmaster::testing::ServedRequest;
using testing::Break;
using ::testing::HasSubstr;
using testing::kKey;
using testing::kPatience;
using testing::kToken;
using testing::Object;
using testing::Pod;
using testing::RestClientTest;
using testing::StatusAnswer;

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

}  // namespace
}  // namespace ringmaster::kube::rest
