#include "cli/screen.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace ringmaster::cli {
namespace {

// Collects what a screen writes into a pipe.
class ScreenTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe(ends_), 0); }
  void TearDown() override { ::close(ends_[0]); }
  std::string Written() {
    ::close(ends_[1]);
    std::string text(65536, '\0');
    const ssize_t got = ::read(ends_[0], text.data(), text.size());
    text.resize(got < 0 ? 0 : got);
    return text;
  }
  int ends_[2];
};

TEST_F(ScreenTest, PlainScreenWritesLinesOnly) {
  {
    Screen screen(ends_[1], false);
    screen.Draw({"bar"});
    screen.Print("event");
    screen.Clear();
  }
  EXPECT_EQ(Written(), "event\n");
}

TEST_F(ScreenTest, LiveScreenKeepsTheBlockBelowTheLines) {
  {
    Screen screen(ends_[1], true);
    screen.Draw({"bar", "workers"});
    screen.Print("event");
  }
  EXPECT_EQ(Written(), "\x1b[?25lbar\nworkers\n\x1b[2A\r\x1b[Jevent\nbar\nworkers\n\x1b[?25h");
}

TEST_F(ScreenTest, UnchangedBlockIsNotWrittenAgain) {
  {
    Screen screen(ends_[1], true);
    screen.Draw({"bar"});
    screen.Draw({"bar"});
  }
  EXPECT_EQ(Written(), "\x1b[?25lbar\n\x1b[?25h");
}

TEST_F(ScreenTest, PipeIsNoTerminal) {
  EXPECT_FALSE(IsTerminal(ends_[1]));
}

}  // namespace
}  // namespace ringmaster::cli
