#include "cli/screen.h"

#include <poll.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/ioctl.h>

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

// A terminal of a given size, and what a screen writes to it.
class TerminalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::openpty(&user_, &program_, nullptr, nullptr, nullptr), 0);
    termios raw{};
    ::cfmakeraw(&raw);
    ASSERT_EQ(::tcsetattr(program_, TCSANOW, &raw), 0);
  }
  void TearDown() override {
    ::close(user_);
    ::close(program_);
  }
  void Resize(uint16_t columns, uint16_t rows) {
    const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(::ioctl(program_, TIOCSWINSZ, &size), 0);
  }
  // A terminal hands on what was written in pieces, when it likes: reads until as much is there as
  // is expected.
  void ExpectWritten(const std::string& expected) {
    std::string text;
    pollfd readable{.fd = user_, .events = POLLIN, .revents = 0};
    while (text.size() < expected.size() && ::poll(&readable, 1, 10'000) == 1) {
      char piece[4096];
      const ssize_t got = ::read(user_, piece, sizeof(piece));
      ASSERT_GT(got, 0);
      text.append(piece, got);
    }
    EXPECT_EQ(text, expected);
  }
  int user_ = -1;
  int program_ = -1;
};

TEST_F(TerminalTest, BlockOfATerminalThatWasMadeNarrowerIsErasedWhole) {
  Resize(40, 24);
  Screen screen(program_, true);
  screen.Draw({std::string(40, 'x'), "short"});
  ExpectWritten("\x1b[?25l" + std::string(40, 'x') + "\nshort\n");
  Resize(15, 24);  // 40 columns are three lines now
  screen.Clear();
  ExpectWritten("\x1b[4A\r\x1b[J");
}

TEST_F(TerminalTest, BlockLeavesOutWhatTheTerminalHasNoRoomFor) {
  Resize(40, 3);
  Screen screen(program_, true);
  screen.Draw({"bar", "numbers", "workers"});
  ExpectWritten("\x1b[?25lbar\nnumbers\n");
}

TEST_F(ScreenTest, PipeIsNoTerminal) {
  EXPECT_FALSE(IsTerminal(ends_[1]));
}

}  // namespace
}  // namespace ringmaster::cli
