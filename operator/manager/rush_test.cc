#include "operator/manager/rush.h"

#include <optional>

#include <gtest/gtest.h>

namespace ringmaster::manager {
namespace {

TEST(RushTest, IsOnWhilePodsAreCreatedAndAMomentLonger) {
  FakeClock clock;
  Rush rush(clock);
  EXPECT_FALSE(rush.IsOn());
  std::optional<Rush::Creation> first(rush);
  std::optional<Rush::Creation> second(rush);
  clock.Advance(std::chrono::hours(1));
  EXPECT_TRUE(rush.IsOn());
  first.reset();
  EXPECT_TRUE(rush.IsOn());
  clock.Advance(std::chrono::hours(1));
  EXPECT_TRUE(rush.IsOn()) << "the other is not over";
  second.reset();
  EXPECT_TRUE(rush.IsOn()) << "the next job's pods may follow";
  clock.Advance(std::chrono::seconds(1));
  EXPECT_FALSE(rush.IsOn());
}

}  // namespace
}  // namespace ringmaster::manager
