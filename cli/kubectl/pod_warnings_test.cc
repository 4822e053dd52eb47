#include "cli/kubectl/pod_warnings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/contract.h"
#include "operator/kube/object.h"

namespace ringmaster::cli::kubectl {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const Time kNow = ParseTime("2026-01-01T00:01:00Z").value();

kube::ObjectPtr Pod(int index, int incarnation = 0, const char* phase = "Pending") {
  return std::make_shared<const Json>(
      Json{{"metadata",
            {{"name", fmt::format("digits-{}-{}", index, incarnation)},
             {"uid", fmt::format("u{}-{}", index, incarnation)},
             {"labels",
              {{contract::kLabelIndex, std::to_string(index)},
               {contract::kLabelIncarnation, std::to_string(incarnation)}}}}},
           {"status", {{"phase", phase}}}});
}

kube::ObjectPtr Placed(const kube::ObjectPtr& pod) {
  Json placed = *pod;
  placed["spec"]["nodeName"] = "node-7";
  return std::make_shared<const Json>(std::move(placed));
}

Json Warning(const kube::ObjectPtr& pod, const std::string& reason, const std::string& message,
             int second) {
  return {{"involvedObject", {{"uid", kube::Uid(*pod)}}},
          {"type", "Warning"},
          {"reason", reason},
          {"message", message},
          {"lastTimestamp", fmt::format("2026-01-01T00:00:{:02}Z", second)}};
}

std::vector<std::string> Names(const std::vector<kube::ObjectPtr>& pods) {
  std::vector<std::string> names;
  for (const kube::ObjectPtr& pod : pods) names.push_back(kube::Name(*pod));
  return names;
}

TEST(PodWarningsTest, AsksOfPodsThatWaitToBeStartedAlone) {
  Json going = *Pod(3);
  going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:59Z";
  EXPECT_THAT(Names(PendingPods({Pod(2), Pod(0), Pod(1, 0, "Running"), Pod(4, 0),
                                 Pod(4, 1, "Failed"), std::make_shared<const Json>(going)})),
              ElementsAre("digits-0-0", "digits-2-0"));
  std::vector<kube::ObjectPtr> many;
  for (int index = 0; index < 100; ++index) many.push_back(Pod(index));
  EXPECT_THAT(PendingPods(many), SizeIs(16));
}

TEST(PodWarningsTest, SelectsByTheUidWhichNoOtherPodOfTheNameHas) {
  EXPECT_EQ(WarningsSelector(*Pod(2, 1)), "involvedObject.uid=u2-1,type=Warning");
}

TEST(PodWarningsTest, PodsThatAreToldTheSameShareARowAndTheNewestIsFirst) {
  const std::vector<kube::ObjectPtr> pods{Pod(0), Pod(1), Pod(2)};
  const std::string missing = "configmap \"settings\" not found";
  EXPECT_EQ(WarningsTable(pods,
                          {Warning(pods[2], "Failed", "no such image", 50),
                           Warning(pods[1], "FailedMount", missing, 30),
                           Warning(pods[0], "FailedMount", missing, 57)},
                          kNow),
            "  PENDING                 LAST SEEN  WARNING      MESSAGE\n"
            "  digits-0-0, digits-1-0  3.0 s      FailedMount  configmap \"settings\" not found\n"
            "  digits-2-0              10 s       Failed       no such image\n");
}

TEST(PodWarningsTest, IsEmptyWhereThereIsNothingToTell) {
  EXPECT_EQ(WarningsTable({Pod(0)}, {}, kNow), "");
  EXPECT_EQ(WarningsTable({Pod(0)}, {Warning(Pod(0, 1), "Failed", "of another pod", 1)}, kNow), "");
}

TEST(PodWarningsTest, APodThatFoundItsNodeIsNotSaidToFindNone) {
  const Json event = Warning(Pod(0), "FailedScheduling", "0/3 nodes are available", 50);
  EXPECT_THAT(WarningsTable({Pod(0)}, {event}, kNow), HasSubstr("0/3 nodes are available"));
  EXPECT_EQ(WarningsTable({Placed(Pod(0))}, {event}, kNow), "");
}

TEST(PodWarningsTest, ReadsTheTimesOfSchedulersToo) {
  Json event = Warning(Pod(0), "FailedScheduling", "0/3 nodes are available", 50);
  event["lastTimestamp"] = nullptr;
  EXPECT_THAT(WarningsTable({Pod(0)}, {event}, kNow), HasSubstr("digits-0-0  –  "));
  event["eventTime"] = "2026-01-01T00:00:40.000000Z";
  EXPECT_THAT(WarningsTable({Pod(0)}, {event}, kNow), HasSubstr("digits-0-0  20 s  "));
  event["series"] = {{"lastObservedTime", "2026-01-01T00:00:56.000000Z"}};
  EXPECT_THAT(WarningsTable({Pod(0)}, {event}, kNow), HasSubstr("digits-0-0  4.0 s  "));
}

TEST(PodWarningsTest, SaysThatAWarningOfAClockAheadIsNoTimeOld) {
  Json event = Warning(Pod(0), "Failed", "no such image", 50);
  event["lastTimestamp"] = "2026-01-01T00:01:01Z";
  EXPECT_THAT(WarningsTable({Pod(0)}, {event}, kNow), HasSubstr("digits-0-0  0.0 s  "));
}

TEST(PodWarningsTest, ShowsAFewOfTheNewest) {
  std::vector<Json> warnings;
  for (int i = 0; i < 20; ++i)
    warnings.push_back(Warning(Pod(0), "Failed", fmt::format("try {:02}", i), i));
  const std::string table = WarningsTable({Pod(0)}, warnings, kNow);
  EXPECT_THAT(table, HasSubstr("try 19"));
  EXPECT_THAT(table, HasSubstr("try 15"));
  EXPECT_THAT(table, Not(HasSubstr("try 14")));
}

}  // namespace
}  // namespace ringmaster::cli::kubectl
