#include "common/clock.h"

#include <gtest/gtest.h>

#include "common/status.h"

namespace ringmaster {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ClockTest, FormatsWholeSecondsWithoutAFraction) {
  EXPECT_EQ(FormatTime(Time(seconds(1767225600))), "2026-01-01T00:00:00Z");
}

TEST(ClockTest, TimesSurviveFormattingAndParsingToTheMicrosecond) {
  const Time time = Time(seconds(1767225661) + microseconds(42));
  EXPECT_EQ(FormatTime(time), "2026-01-01T00:01:01.000042Z");
  EXPECT_EQ(ParseTime(FormatTime(time)).value(), time);
}

TEST(ClockTest, ParsesAnOffsetAndAShortFraction) {
  EXPECT_EQ(ParseTime("2026-01-01T02:00:00.5+02:00").value(),
            Time(seconds(1767225600) + milliseconds(500)));
}

TEST(ClockTest, RefusesWhatIsNoDate) {
  for (const char* text :
       {"", "2026-02-30T00:00:00Z", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00:00Zz",
        "2026-01-01T24:00:00Z", "2026-01-01T00:00:00.Z"}) {
    EXPECT_EQ(ParseTime(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(ClockTest, FakeClockMovesOnlyWhenAdvanced) {
  FakeClock clock;
  const Time wall = clock.Now();
  const SteadyTime steady = clock.SteadyNow();
  clock.Advance(seconds(5));
  EXPECT_EQ(clock.Now() - wall, seconds(5));
  EXPECT_EQ(clock.SteadyNow() - steady, seconds(5));
}

TEST(ClockTest, DurationsReadAsPeopleWriteThem) {
  EXPECT_EQ(FormatDuration(milliseconds(312)), "0.3 s");
  EXPECT_EQ(FormatDuration(seconds(14)), "14 s");
  EXPECT_EQ(FormatDuration(seconds(125)), "2m5s");
  EXPECT_EQ(FormatDuration(hours(50)), "2d2h");
}

}  // namespace
}  // namespace ringmaster
