#include "launcher/log_tail.h"

#include <gtest/gtest.h>

namespace ringmaster::launcher {
namespace {

TEST(LogTailTest, KeepsTheLastLines) {
  LogTail tail(2, 100);
  tail.Append("one\ntwo\nthree\n");
  EXPECT_EQ(tail.Text(), "two\nthree");
}

TEST(LogTailTest, CountsALastLineWithoutANewline) {
  LogTail tail(2, 100);
  tail.Append("one\ntwo\nthr");
  tail.Append("ee");
  EXPECT_EQ(tail.Text(), "two\nthree");
}

TEST(LogTailTest, CutsLongLines) {
  LogTail tail(2, 4);
  tail.Append("abcdef");
  tail.Append("ghi\nxy\n");
  EXPECT_EQ(tail.Text(), "abcd\nxy");
}

TEST(LogTailTest, StaysSmallForOutputWithoutNewlines) {
  LogTail tail(2, 10);
  for (int i = 0; i < 1000; ++i) tail.Append(std::string(1000, 'x'));
  EXPECT_EQ(tail.Text(), "xxxxxxxxxx");
}

TEST(LogTailTest, ReplacesWhatIsNoUtf8) {
  LogTail tail(5, 100);
  tail.Append("gr\xc3\xbc\xc3\x9f \xff\xfe \xc0\xaf \xed\xa0\x80 \xe2\x82\xac \xf0\x9f\x98\x80\n");
  EXPECT_EQ(tail.Text(), "gr\xc3\xbc\xc3\x9f ?? ?? ??? \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(LogTailTest, ReplacesACharacterThatTheLimitCutInTwo) {
  LogTail tail(5, 2);
  tail.Append("a\xe2\x82\xac\n");
  EXPECT_EQ(tail.Text(), "a?");
}

}  // namespace
}  // namespace ringmaster::launcher
