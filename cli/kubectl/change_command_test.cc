#include "cli/kubectl/change_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/status.h"

namespace ringmaster::cli::kubectl {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// A job as a server has stored it.
json Job() {
  return {{"apiVersion", "training.ringmaster.dev/v1alpha1"},
          {"kind", "TrainingJob"},
          {"metadata", {{"name", "digits"}, {"namespace", "ml"}, {"uid", "u"}}},
          {"spec",
           {{"workers", {{"replicas", 2}, {"minReplicas", 2}, {"maxReplicas", 4}}},
            {"trainer",
             {{"model", {{"zoo", {{"name", "lenet-bn"}}}}},
              {"data", {{"csv", {{"path", "x.csv"}, {"classes", 10}, {"shape", {1, 8, 8}}}}}},
              {"optimizer", {{"sgd", {{"learningRate", 0.05}}}}},
              {"batch", {{"size", 64}, {"shards", 4}}},
              {"epochs", 1}}}}}};
}

TEST(CheckWorkersTest, WithinTheBoundsIsFine) {
  for (const int workers : {2, 3, 4}) EXPECT_TRUE(CheckWorkers(Job(), workers).ok()) << workers;
}

TEST(CheckWorkersTest, OutsideOfThemNamesTheFieldAndTheBounds) {
  const absl::Status more = CheckWorkers(Job(), 5);
  EXPECT_TRUE(absl::IsInvalidArgument(more)) << more;
  EXPECT_EQ(Message(more),
            "digits: spec.workers.replicas: 5 is more than maxReplicas (4); lower it or raise "
            "maxReplicas; it may have 2 to 4 workers");
  EXPECT_THAT(Message(CheckWorkers(Job(), 1)), HasSubstr("2 is more than replicas (1)"));
}

TEST(CheckWorkersTest, ShardsOfTheFirstRoundAreABoundToo) {
  json job = Job();
  job["spec"]["workers"].erase("maxReplicas");
  job["spec"]["trainer"]["batch"].erase("shards");
  EXPECT_TRUE(CheckWorkers(job, 8).ok());
  job["status"] = {{"shards", 4}};
  const absl::Status more = CheckWorkers(job, 8);
  EXPECT_THAT(Message(more), HasSubstr("8 is more than the 4 virtual shards"));
  EXPECT_THAT(Message(more), HasSubstr("it may have 2 to 4 workers"));
}

TEST(CheckWorkersTest, WhatWasWrongBeforeIsNotHeldAgainstIt) {
  json job = Job();
  job["spec"]["trainer"]["unknown"] = 1;
  EXPECT_TRUE(CheckWorkers(job, 3).ok()) << CheckWorkers(job, 3);
}

}  // namespace
}  // namespace ringmaster::cli::kubectl
