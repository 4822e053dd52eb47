// A REST client against a server that answers as a test has it, and what such answers are made of.
#ifndef RINGMASTER_TESTS_SUPPORT_REST_CLIENT_FIXTURE_H_
#define RINGMASTER_TESTS_SUPPORT_REST_CLIENT_FIXTURE_H_

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/object.h"
#include "operator/kube/rest/rest_client.h"
#include "tests/support/scripted_http_server.h"

namespace ringmaster::kube::rest::testing {

inline constexpr char kToken[] = "very-secret-token";
inline constexpr std::chrono::seconds kPatience{20};
inline const ObjectKey kKey{"default", "a"};

inline std::string StatusBody(int code, const std::string& reason, const std::string& message) {
  return Json({{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}})
      .dump();
}

inline ringmaster::testing::HttpScript StatusAnswer(int code, const std::string& reason,
                                                    const std::string& headers = "") {
  return ringmaster::testing::Answer(code, StatusBody(code, reason, "as the test wants"), headers);
}

inline Json Pod(const std::string& name) {
  return NewObject(kPod, {"default", name});
}

inline ringmaster::testing::HttpScript Object(const std::string& name = "a") {
  return ringmaster::testing::Answer(200, Pod(name).dump());
}

// Takes the request and says nothing until the client has gone.
inline void Stall(ringmaster::testing::ServedRequest& request) {
  request.AwaitClosed(kPatience);
  request.Close();
}

inline void Break(ringmaster::testing::ServedRequest& request) {
  request.Reset();
}

class RestClientTest : public ::testing::Test {
 protected:
  static RestOptions Quick() {
    using std::chrono_literals::operator""ms;
    using std::chrono_literals::operator""s;
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
    EXPECT_THAT(status.ToString(), ::testing::Not(::testing::HasSubstr(kToken)));
  }

  int Connections() const {
    int last = 0;
    for (const auto& request : server_.requests()) last = std::max(last, request.connection);
    return last;
  }

  ringmaster::testing::ScriptedHttpServer server_;
};

}  // namespace ringmaster::kube::rest::testing

#endif  // RINGMASTER_TESTS_SUPPORT_REST_CLIENT_FIXTURE_H_
