#include "common/metrics.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http.h"

namespace ringmaster::metrics {
namespace {

using ringmaster::testing::ConnectTo;
using ringmaster::testing::HttpGet;
using ::testing::HasSubstr;

TEST(MetricsTest, SeriesOfOneNameDifferByTheirLabels) {
  Registry registry;
  registry.AddCounter("ringmaster_test_total", "Tests.", {{"result", "done"}}).Increment();
  registry.AddCounter("ringmaster_test_total", "Tests.", {{"result", "retry"}}).Increment(2);
  EXPECT_THAT(registry.Text(), HasSubstr("ringmaster_test_total{result=\"done\"} 1"));
  EXPECT_THAT(registry.Text(), HasSubstr("ringmaster_test_total{result=\"retry\"} 2"));
}

TEST(MetricsTest, AskingTwiceReturnsTheSameSeries) {
  Registry registry;
  Gauge& gauge = registry.AddGauge("ringmaster_test_depth", "Depth.");
  gauge.Set(3);
  EXPECT_EQ(&registry.AddGauge("ringmaster_test_depth", "Depth."), &gauge);
}

TEST(MetricsTest, HistogramCountsInTheBucketsThatHold) {
  Registry registry;
  Histogram& histogram =
      registry.AddHistogram("ringmaster_test_seconds", "Time.", ExponentialBuckets(0.001, 10, 3));
  histogram.Observe(0.005);
  EXPECT_THAT(registry.Text(), HasSubstr("ringmaster_test_seconds_bucket{le=\"0.01\"} 1"));
  EXPECT_THAT(registry.Text(), HasSubstr("ringmaster_test_seconds_bucket{le=\"0.001\"} 0"));
}

TEST(MetricsTest, EndpointServesTheRegistry) {
  Registry registry;
  registry.AddCounter("ringmaster_test_total", "Tests.").Increment(7);
  const auto server = Server::Start(registry, "127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(HttpGet((*server)->port(), "/metrics"), HasSubstr("ringmaster_test_total 7"));
}

TEST(MetricsTest, EndpointStopsAtOnce) {
  Registry registry;
  auto server = Server::Start(registry, "127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  HttpGet((*server)->port(), "/metrics");
  const auto before = std::chrono::steady_clock::now();
  server->reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before,
            std::chrono::seconds(4));  // a connection's patience is 5 s
}

TEST(MetricsTest, SilentClientKeepsNobodyFromScraping) {
  Registry registry;
  const auto server = Server::Start(registry, "127.0.0.1:0");
  ASSERT_TRUE(server.ok()) << server.status();
  const UniqueFd silent = ConnectTo((*server)->port());
  EXPECT_THAT(HttpGet((*server)->port(), "/metrics"), HasSubstr("200 OK"));
}

TEST(MetricsTest, AddressThatIsNoneIsRefused) {
  Registry registry;
  EXPECT_EQ(Server::Start(registry, "7470").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(MetricsTest, TakenPortIsAnErrorThatNamesIt) {
  Registry registry;
  const auto first = Server::Start(registry, "127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const std::string address = "127.0.0.1:" + std::to_string((*first)->port());
  const auto second = Server::Start(registry, address);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(address));
}

}  // namespace
}  // namespace ringmaster::metrics
