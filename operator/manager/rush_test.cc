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

TEST(RushTest, DoesNotFollowFromACreationThatCameToNothing) {
  FakeClock clock;
  Rush rush(clock);
  std::optional<Rush::Creation> creation(rush);
  EXPECT_TRUE(rush.IsOn());
  creation->Cancel();
  creation.reset();
  EXPECT_FALSE(rush.IsOn());
}

TEST(RushTest, IsOnWhilePodsChangeByTheDozenAndASecondLonger) {
  constexpr std::chrono::milliseconds kStep(10);
  FakeClock clock;
  Rush rush(clock);
  const auto change = [&](int seconds, int steps_apart) {
    for (int step = 0; step < 100 * seconds; ++step) {
      clock.Advance(kStep);
      if (step % steps_apart == 0) rush.NoteChange();
    }
  };
  change(/*seconds=*/60, /*steps_apart=*/3);  // 33 a second
  EXPECT_FALSE(rush.IsOn());
  change(/*seconds=*/5, /*steps_apart=*/1);  // 100 a second
  EXPECT_TRUE(rush.IsOn());
  clock.Advance(std::chrono::milliseconds(1001));
  EXPECT_FALSE(rush.IsOn());
}

TEST(RushTest, IsNotOnForTheChangesOfOneJobsPods) {
  FakeClock clock;
  Rush rush(clock);
  for (int change = 0; change < 3 * 16; ++change) rush.NoteChange();
  EXPECT_FALSE(rush.IsOn());
}

}  // namespace
}  // namespace ringmaster::manager
