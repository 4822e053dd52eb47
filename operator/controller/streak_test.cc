#include "operator/controller/streak.h"

#include <gtest/gtest.h>

namespace ringmaster::controller {
namespace {

using std::chrono::seconds;

class StreakTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  Streak streak_{3, seconds(5), clock_};
};

TEST_F(StreakTest, BelievesNoQuickAnswersHoweverMany) {
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(streak_.Again());
  clock_.Advance(seconds(5));
  EXPECT_TRUE(streak_.Again());
}

TEST_F(StreakTest, BelievesNoFewAnswersHoweverFarApart) {
  EXPECT_FALSE(streak_.Again());
  clock_.Advance(seconds(60));
  EXPECT_FALSE(streak_.Again());
  EXPECT_TRUE(streak_.Again());
}

TEST_F(StreakTest, AnotherAnswerBeginsItAnew) {
  EXPECT_FALSE(streak_.Again());
  EXPECT_FALSE(streak_.Again());
  clock_.Advance(seconds(5));
  streak_.Break();
  EXPECT_FALSE(streak_.Again());
  EXPECT_FALSE(streak_.Again());
  EXPECT_FALSE(streak_.Again()) << "its time begins anew too";
  clock_.Advance(seconds(5));
  EXPECT_TRUE(streak_.Again());
}

}  // namespace
}  // namespace ringmaster::controller
