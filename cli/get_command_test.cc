#include "cli/get_command.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ringmaster::cli {
namespace {

using nlohmann::json;

const Time kNow = ParseTime("2026-01-01T00:00:21Z").value();

TEST(GetCommandTest, TableHasTheColumnsOfKubectl) {
  const json running = {
      {"metadata", {{"name", "digits"}, {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
      {"status",
       {{"state", "Running"},
        {"workers", {{"summary", "4/4"}}},
        {"restarts", {{"total", 1}}},
        {"progress", {{"summary", "268/448"}, {"loss", 0.0812}}}}}};
  const json fresh = {{"metadata", {{"name", "vgg"}}}};
  EXPECT_EQ(JobTable({running, fresh}, kNow),
            "NAME    STATE    WORKERS  STEP     LOSS   RESTARTS  AGE\n"
            "digits  Running  4/4      268/448  0.081  1         21 s\n"
            "vgg     –        –        –        –      0         –\n");
}

TEST(GetCommandTest, WideTableAddsNamespaceRoundAndCheckpoint) {
  const json job = {{"metadata", {{"name", "digits"}, {"namespace", "ml"}}},
                    {"status", {{"round", 2}, {"progress", {{"lastCheckpointStep", 250}}}}}};
  EXPECT_EQ(JobTable({job}, kNow, {.ns = true, .wide = true}),
            "NAMESPACE  NAME    STATE  WORKERS  STEP  LOSS  RESTARTS  AGE  ROUND  CHECKPOINT\n"
            "ml         digits  –      –        –     –     0         –    2      250\n");
}

TEST(GetCommandTest, EventsAreInTheOrderOfTime) {
  const json later = {{"lastTimestamp", "2026-01-01T00:00:20Z"},
                      {"type", "Warning"},
                      {"reason", "WorkerLost"},
                      {"message", "w2"}};
  const json earlier = {{"lastTimestamp", "2026-01-01T00:00:11Z"},
                        {"type", "Normal"},
                        {"reason", "RoundStarted"},
                        {"message", "r1"}};
  EXPECT_EQ(EventTable({later, earlier}, kNow),
            "LAST SEEN  TYPE     REASON        MESSAGE\n"
            "10 s       Normal   RoundStarted  r1\n"
            "1.0 s      Warning  WorkerLost    w2\n");
}

TEST(GetCommandTest, EventsOfOneSecondAreInTheOrderOfTheirWrites) {
  const auto event = [](const char* message, const char* version) {
    return json{{"metadata", {{"resourceVersion", version}}},
                {"lastTimestamp", "2026-01-01T00:00:20Z"},
                {"type", "Normal"},
                {"reason", "CheckpointCommitted"},
                {"message", message}};
  };
  EXPECT_EQ(
      EventTable({event("step 200", "101"), event("step 50", "9"), event("step 150", "85")}, kNow),
      "LAST SEEN  TYPE    REASON               MESSAGE\n"
      "1.0 s      Normal  CheckpointCommitted  step 50\n"
      "1.0 s      Normal  CheckpointCommitted  step 150\n"
      "1.0 s      Normal  CheckpointCommitted  step 200\n");
}

}  // namespace
}  // namespace ringmaster::cli
