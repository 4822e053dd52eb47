#include "operator/metrics/operator_metrics.h"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ringmaster::operator_metrics {
namespace {

using kube::Json;
using ::testing::HasSubstr;

kube::ObjectPtr Job(const std::string& state, int round, const Json& by_cause = Json::object(),
                    const Json& checkpoints = Json::array()) {
  return std::make_shared<const Json>(Json{{"status",
                                            {{"state", state},
                                             {"round", round},
                                             {"restarts", {{"byCause", by_cause}}},
                                             {"checkpoints", checkpoints}}}});
}

class OperatorMetricsTest : public ::testing::Test {
 protected:
  metrics::Registry registry_;
  OperatorMetrics metrics_{registry_};
};

TEST_F(OperatorMetricsTest, PassesAreCountedByResult) {
  metrics_.OnReconcile("retry", std::chrono::milliseconds(2));
  EXPECT_THAT(registry_.Text(),
              HasSubstr("ringmaster_operator_reconcile_total{result=\"retry\"} 1"));
  EXPECT_THAT(registry_.Text(),
              HasSubstr("ringmaster_operator_reconcile_seconds_count{result=\"retry\"} 1"));
}

TEST_F(OperatorMetricsTest, EventsAreCountedByWhatCameOfThem) {
  metrics_.OnEvent("dropped");
  EXPECT_THAT(registry_.Text(),
              HasSubstr("ringmaster_operator_events_total{outcome=\"dropped\"} 1"));
  EXPECT_THAT(registry_.Text(),
              HasSubstr("ringmaster_operator_events_total{outcome=\"recorded\"} 0"));
}

TEST_F(OperatorMetricsTest, TheQueueIsAsDeepAsItWasLastSaidToBe) {
  metrics_.OnQueueDepth(3);
  EXPECT_THAT(registry_.Text(), HasSubstr("ringmaster_operator_queue_depth 3"));
  metrics_.OnQueueDepth(0);
  EXPECT_THAT(registry_.Text(), HasSubstr("ringmaster_operator_queue_depth 0"));
}

TEST_F(OperatorMetricsTest, JobsMoveBetweenStatesAndGo) {
  const auto pending = Job("Pending", 0);
  const auto running = Job("Running", 1);
  metrics_.OnJob(nullptr, pending);
  metrics_.OnJob(pending, running);
  EXPECT_THAT(registry_.Text(), HasSubstr("ringmaster_operator_jobs{state=\"Running\"} 1"));
  EXPECT_THAT(registry_.Text(), HasSubstr("ringmaster_operator_jobs{state=\"Pending\"} 0"));
  metrics_.OnJob(running, nullptr);
  EXPECT_THAT(registry_.Text(), HasSubstr("ringmaster_operator_jobs{state=\"Running\"} 0"));
}

TEST_F(OperatorMetricsTest, TheJobThatIsLongestInAStateTellsSinceWhen) {
  const auto job = [](const char* state, const char* created, const char* changed) {
    Json object{{"metadata", {{"creationTimestamp", created}}}, {"status", {{"state", state}}}};
    if (changed != nullptr) {
      object["status"]["conditions"] = {
          {{"type", "PodsReady"}, {"lastTransitionTime", changed}},
          {{"type", "Training"}, {"lastTransitionTime", "1970-01-01T00:00:30Z"}}};
    }
    return std::make_shared<const Json>(object);
  };
  const std::string series = "ringmaster_operator_oldest_state_timestamp_seconds";
  const auto waiting = job("Pending", "1970-01-01T00:01:00Z", nullptr);
  const auto stuck = job("Pending", "1970-01-01T00:00:10Z", "1970-01-01T00:00:40Z");
  metrics_.OnJob(nullptr, waiting);
  metrics_.OnJob(nullptr, stuck);
  EXPECT_THAT(registry_.Text(), HasSubstr(series + "{state=\"Pending\"} 40"));
  metrics_.OnJob(stuck, job("Running", "1970-01-01T00:00:10Z", "1970-01-01T00:01:20Z"));
  EXPECT_THAT(registry_.Text(), HasSubstr(series + "{state=\"Pending\"} 60"));
  EXPECT_THAT(registry_.Text(), HasSubstr(series + "{state=\"Running\"} 80"));
  metrics_.OnJob(waiting, nullptr);
  EXPECT_THAT(registry_.Text(), HasSubstr(series + "{state=\"Pending\"} 0"));
}

TEST_F(OperatorMetricsTest, JobsOfAnotherControllerCountNowhere) {
  const auto job = [](const char* managed_by) {
    Json object{{"metadata", {{"creationTimestamp", "1970-01-01T00:01:00Z"}}}};
    if (managed_by != nullptr) object["spec"]["managedBy"] = managed_by;
    return std::make_shared<const Json>(object);
  };
  const auto anothers = job("kueue.x-k8s.io/multikueue");
  metrics_.OnJob(nullptr, anothers);
  EXPECT_THAT(registry_.Text(), HasSubstr("ringmaster_operator_jobs{state=\"Pending\"} 0"));
  const std::string since =
      "ringmaster_operator_oldest_state_timestamp_seconds{state=\"Pending\"} ";
  EXPECT_THAT(registry_.Text(), HasSubstr(since + "0"));
  metrics_.OnJob(nullptr, job("ringmaster.dev/operator"));
  metrics_.OnJob(nullptr, job(nullptr));
  EXPECT_THAT(registry_.Text(), HasSubstr("ringmaster_operator_jobs{state=\"Pending\"} 2"));
  EXPECT_THAT(registry_.Text(), HasSubstr(since + "60"));
  metrics_.OnJob(anothers, job(nullptr));  // deleted and made anew while nobody watched
  EXPECT_THAT(registry_.Text(), HasSubstr("ringmaster_operator_jobs{state=\"Pending\"} 3"));
}

TEST_F(OperatorMetricsTest, CountersStartFromWhatWasThereWhenWatchingBegan) {
  const auto before = Job("Running", 3, {{"NodeLost", 2}}, Json::array({{{"step", 10}}}));
  const auto after =
      Job("Running", 4, {{"NodeLost", 3}}, Json::array({{{"step", 20}}, {{"step", 10}}}));
  metrics_.OnJob(nullptr, before);
  metrics_.OnJob(before, after);
  EXPECT_THAT(registry_.Text(), HasSubstr("ringmaster_operator_rounds_total 1"));
  EXPECT_THAT(registry_.Text(),
              HasSubstr("ringmaster_operator_restarts_total{cause=\"NodeLost\"} 1"));
  EXPECT_THAT(registry_.Text(), HasSubstr("ringmaster_operator_checkpoints_total 1"));
}

TEST_F(OperatorMetricsTest, UnknownCauseAddsNoLabel) {
  metrics_.OnJob(Job("Running", 1), Job("Running", 1, {{"Gremlins", 1}}));
  EXPECT_THAT(registry_.Text(),
              HasSubstr("ringmaster_operator_restarts_total{cause=\"Unknown\"} 1"));
}

}  // namespace
}  // namespace ringmaster::operator_metrics
