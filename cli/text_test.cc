#include "cli/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

using ::testing::ElementsAre;

TEST(TextTest, WidthCountsCodePointsAndNoColours) {
  EXPECT_EQ(DisplayWidth("\x1b[32mw0 ●\x1b[0m"), 4);
}

TEST(TextTest, LongLineIsBrokenBetweenWordsAndIndentedFurther) {
  EXPECT_THAT(Wrap("  a worker was lost", 11), ElementsAre("  a worker", "    was", "    lost"));
  EXPECT_THAT(Wrap("digits  lenet · 4", 15), ElementsAre("digits  lenet ·", "  4"));
  EXPECT_THAT(Wrap("  short", 80), ElementsAre("  short"));
  EXPECT_THAT(Wrap("averylongword and", 5), ElementsAre("averylongword", "  and"));
  EXPECT_THAT(Wrap("", 5), ElementsAre(""));
}

TEST(TextTest, TruncatedTextEndsInAnEllipsisAndFits) {
  EXPECT_EQ(Truncate("short", 5), "short");
  EXPECT_EQ(Truncate("longer", 5), "long…");
  EXPECT_EQ(DisplayWidth(Truncate("●●●●●●", 4)), 4);
}

TEST(TextTest, TruncatedColourIsSwitchedOff) {
  EXPECT_TRUE(Truncate("\x1b[32mlonger\x1b[0m", 4).ends_with("\x1b[0m"));
}

TEST(TextTest, TableColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(FormatTable({{"NAME", "STATE"}, {"digits", "–"}, {"x", "Running"}}),
            "NAME    STATE\ndigits  –\nx       Running\n");
}

TEST(TextTest, BarIsEmptyHalfAndFull) {
  EXPECT_EQ(ProgressBar(0, 4), "────");
  EXPECT_EQ(ProgressBar(0.375, 4), "━╸──");
  EXPECT_EQ(ProgressBar(2, 4), "━━━━");
}

TEST(TextTest, TimeOfAClockAheadOfThisMachinesIsNoTimeAgo) {
  const Time now{std::chrono::seconds(100)};
  EXPECT_EQ(Ago(now - std::chrono::seconds(3), now), "3.0 s");
  EXPECT_EQ(Ago(now + std::chrono::milliseconds(400), now), "0.0 s");
  EXPECT_EQ(Ago(std::nullopt, now), "–");
}

}  // namespace
}  // namespace ringmaster::cli
