#include "launcher/health.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http.h"

namespace ringmaster::launcher {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The answer once it holds the words; the last one after the deadline.
std::string Eventually(int port, const std::string& path, const std::string& words) {
  std::string answer;
  const SteadyTime end = SystemClock().SteadyNow() + std::chrono::seconds(30);
  while (SystemClock().SteadyNow() < end) {
    answer = ringmaster::testing::HttpGet(port, path);
    if (answer.find(words) != std::string::npos) break;
  }
  return answer;
}

TEST(HealthTest, SaysWhatTheWorkerWaitsForAndThatItIsReady) {
  const auto loop = *EventLoop::Create();
  std::atomic<bool> ready = false;
  Health health(*loop, {.address = "127.0.0.1:0", .look_every = milliseconds(5)},
                [&] { return ready ? absl::OkStatus() : absl::UnavailableError("no round yet"); });
  std::jthread turns([&] { loop->Run(); });
  EXPECT_THAT(Eventually(health.port(), "/readyz", "no round yet"), HasSubstr(" 503 "));
  EXPECT_THAT(Eventually(health.port(), "/healthz", "ok"), HasSubstr(" 200 "));
  ready = true;
  EXPECT_THAT(Eventually(health.port(), "/readyz", "ok"), HasSubstr(" 200 "));
  loop->Quit();
}

TEST(HealthTest, SaysOfALoopThatStandsStillThatItIsNeitherWellNorReady) {
  const auto loop = *EventLoop::Create();
  const Health health(*loop, {.address = "127.0.0.1:0", .longest_turn = milliseconds(20)},
                      [] { return absl::OkStatus(); });
  for (const char* path : {"/healthz", "/readyz"}) {
    EXPECT_THAT(Eventually(health.port(), path, "stood still"),
                AllOf(HasSubstr(" 503 "), HasSubstr("stood still for")));
  }
}

TEST(HealthTest, AnAddressThatIsTakenStopsNothing) {
  const auto loop = *EventLoop::Create();
  const auto ready = [] { return absl::OkStatus(); };
  const Health first(*loop, {.address = "127.0.0.1:0"}, ready);
  const Health second(*loop, {.address = "127.0.0.1:" + std::to_string(first.port())}, ready);
  EXPECT_EQ(second.port(), 0);
}

}  // namespace
}  // namespace ringmaster::launcher
