// The parts of the REST client that know no connection: addresses, paths, errors, the rate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/kube/errors.h"
#include "operator/kube/rest/rate_limiter.h"
#include "operator/kube/rest/resource_path.h"
#include "operator/kube/rest/server_address.h"
#include "operator/kube/rest/status_errors.h"

namespace ringmaster::kube::rest {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using ::testing::HasSubstr;
using Code = absl::StatusCode;

TEST(ServerAddressTest, TakesAnAddressApart) {
  const auto full = *ParseServerAddress("https://[fd00::1]:6443/clusters/a/");
  EXPECT_TRUE(full.tls);
  EXPECT_EQ(full.host, "fd00::1");
  EXPECT_EQ(full.port, 6443);
  EXPECT_EQ(full.path, "/clusters/a");
  EXPECT_EQ(full.HostHeader(), "[fd00::1]:6443");
  EXPECT_EQ(ParseServerAddress("https://api.example")->port, 443);
  EXPECT_EQ(ParseServerAddress("http://api.example/")->port, 80);
  EXPECT_EQ(ParseServerAddress("https://[::1]")->HostHeader(), "[::1]:443");
}

TEST(ResourcePathTest, FollowsTheApisLayout) {
  EXPECT_EQ(*ObjectPath(kPod, {"default", "a"}), "/api/v1/namespaces/default/pods/a");
  EXPECT_EQ(*ObjectPath(kTrainingJob, {"n", "a.b"}),
            "/apis/training.ringmaster.dev/v1alpha1/namespaces/n/trainingjobs/a.b");
  EXPECT_EQ(CollectionPath(kLease, ""), "/apis/coordination.k8s.io/v1/leases");
  EXPECT_EQ(*ObjectPath({"", "v1", "nodes", "Node", false}, {"", "n1"}), "/api/v1/nodes/n1");
  EXPECT_EQ(Query().Add("a", "x,y =z").Add("b", "").Add("c", "1").text(), "?a=x%2Cy%20%3Dz&c=1");
}

TEST(ResourcePathTest, LeadsNowhereElse) {
  for (const char* name : {"", ".", "..", "a/b", "%2e"}) {
    EXPECT_EQ(Reason(ObjectPath(kPod, {"default", name}).status()), kReasonBadRequest) << name;
    EXPECT_EQ(Reason(ObjectPath(kPod, {name, "a"}).status()), kReasonBadRequest) << name;
  }
}

TEST(StatusErrorsTest, TheReasonDecides) {
  const std::vector<std::tuple<int, std::string, Code, std::string>> cases = {
      {400, "BadRequest", Code::kInvalidArgument, kReasonBadRequest},
      {401, "Unauthorized", Code::kUnauthenticated, kReasonUnauthorized},
      {403, "Forbidden", Code::kPermissionDenied, kReasonForbidden},
      {404, "NotFound", Code::kNotFound, kReasonNotFound},
      {409, "AlreadyExists", Code::kAlreadyExists, kReasonAlreadyExists},
      {409, "Conflict", Code::kAborted, kReasonConflict},
      {410, "Expired", Code::kOutOfRange, kReasonExpired},
      {410, "Gone", Code::kOutOfRange, kReasonExpired},
      {413, "RequestEntityTooLarge", Code::kInvalidArgument, "RequestEntityTooLarge"},
      {422, "Invalid", Code::kInvalidArgument, kReasonInvalid},
      {429, "TooManyRequests", Code::kResourceExhausted, kReasonTooManyRequests},
      {500, "InternalError", Code::kUnavailable, kReasonInternalError},
      {500, "ServerTimeout", Code::kUnavailable, "ServerTimeout"},
      {503, "ServiceUnavailable", Code::kUnavailable, kReasonServiceUnavailable},
      {504, "Timeout", Code::kDeadlineExceeded, kReasonTimeout},
      {409, "SomethingNew", Code::kAborted, kReasonConflict},
      {418, "Teapot", Code::kInvalidArgument, kReasonBadRequest},
  };
  for (const auto& [http_code, reason, code, expected] : cases) {
    const Json body = {
        {"kind", "Status"}, {"code", http_code}, {"reason", reason}, {"message", "why"}};
    const absl::Status status = ErrorOf(http_code, body.dump(), false, "GET /x");
    EXPECT_EQ(status.code(), code) << reason << ": " << status;
    EXPECT_EQ(Reason(status), expected);
    EXPECT_THAT(status.ToString(), HasSubstr("why"));
  }
}

TEST(StatusErrorsTest, WithoutAStatusTheCodeOfTheServersOwnAnswerDecides) {
  const absl::Status unknown = ErrorOf(404, "404 page not found\n", true, "GET /x");
  EXPECT_EQ(unknown.code(), Code::kNotFound);
  EXPECT_THAT(unknown.ToString(), HasSubstr("CustomResourceDefinition"));
  EXPECT_EQ(ErrorOf(400, "", true, "GET /x").code(), Code::kInvalidArgument);
  EXPECT_EQ(ErrorOf(429, "", true, "GET /x").code(), Code::kResourceExhausted);
  EXPECT_EQ(ErrorOf(302, "", true, "GET /x").code(), Code::kInvalidArgument);
  const absl::Status binary = ErrorOf(500, std::string("a\0\x1b[31m\xff", 8), true, "GET /x");
  EXPECT_THAT(binary.ToString(), HasSubstr("GET /x: the server answered 500: a"));
  EXPECT_EQ(binary.ToString().find('\x1b'), std::string::npos);
}

TEST(StatusErrorsTest, WhatStandsBeforeTheServerSaysNothingAboutObjects) {
  for (const int http_code : {302, 307, 400, 404, 405, 406, 409, 410, 413, 415, 418, 422}) {
    const absl::Status status = ErrorOf(http_code, "<html>no</html>", false, "DELETE /x");
    EXPECT_EQ(status.code(), Code::kUnavailable) << http_code << ": " << status;
    EXPECT_THAT(status.ToString(), HasSubstr("<html>no</html>"));
  }
  // A gateway of Go, too, has no page of that path.
  EXPECT_EQ(ErrorOf(404, "404 page not found\n", false, "DELETE /x").code(), Code::kUnavailable);
  EXPECT_EQ(ErrorOf(404, R"({"kind": "NotFound"})", false, "DELETE /x").code(), Code::kUnavailable);
}

TEST(StatusErrorsTest, WhatStandsBeforeTheServerMayKeepOneOutOrAskForPatience) {
  const std::vector<std::pair<int, Code>> cases = {
      {401, Code::kUnauthenticated},  {403, Code::kPermissionDenied},
      {408, Code::kDeadlineExceeded}, {429, Code::kResourceExhausted},
      {500, Code::kUnavailable},      {502, Code::kUnavailable},
      {503, Code::kUnavailable},      {504, Code::kDeadlineExceeded},
  };
  for (const auto& [http_code, code] : cases)
    EXPECT_EQ(ErrorOf(http_code, "<html>", false, "GET /x").code(), code) << http_code;
}

TEST(StatusErrorsTest, AFullEtcdIsNoSpaceLeft) {
  const Json body = {
      {"kind", "Status"}, {"code", 500}, {"message", "etcdserver: mvcc: database space exceeded"}};
  EXPECT_EQ(ErrorOf(500, body.dump(), false, "POST /x").code(), Code::kResourceExhausted);
}

TEST(StatusErrorsTest, FindsWhenToComeBack) {
  EXPECT_EQ(RetryAfter("7", ""), 7s);
  EXPECT_EQ(RetryAfter("99999999", ""), 3600s);
  EXPECT_EQ(RetryAfter("Wed, 21 Oct 2026 07:28:00 GMT", ""), std::nullopt);
  EXPECT_EQ(RetryAfter("", R"({"kind": "Status", "details": {"retryAfterSeconds": 3}})"), 3s);
  EXPECT_EQ(RetryAfter("", "{"), std::nullopt);
}

TEST(RateLimiterTest, LetsABurstThroughAndThenKeepsTheRate) {
  RateLimiter limiter(10, 3);
  const SteadyTime now = SteadyTime::clock::now();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limiter.Reserve(now, now + 3600s), now);
  EXPECT_EQ(limiter.Reserve(now, now + 3600s), now + 100ms);
  EXPECT_EQ(limiter.Reserve(now, now + 3600s), now + 200ms);
  EXPECT_EQ(limiter.Reserve(now + 10s, now + 3600s), now + 10s);
}

TEST(RateLimiterTest, TakesNoPlaceThatComesTooLate) {
  RateLimiter limiter(1, 1);
  const SteadyTime now = SteadyTime::clock::now();
  EXPECT_TRUE(limiter.Reserve(now, now).has_value());
  EXPECT_FALSE(limiter.Reserve(now, now + 500ms).has_value());
  EXPECT_EQ(limiter.Reserve(now, now + 1s), now + 1s);
  EXPECT_EQ(RateLimiter(0, 1).Reserve(now, now), now);
}

}  // namespace
}  // namespace ringmaster::kube::rest
