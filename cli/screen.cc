#include "cli/screen.h"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <sys/ioctl.h>

#include "cli/text.h"
#include "common/env.h"
#include "common/file.h"

namespace ringmaster::cli {
namespace {

constexpr int kDefaultWidth = 80;
constexpr int kDefaultHeight = 24;
constexpr char kHideCursor[] = "\x1b[?25l";
constexpr char kShowCursor[] = "\x1b[?25h";
constexpr char kEraseBelow[] = "\r\x1b[J";

}  // namespace

Screen::Screen(int fd, bool live) : fd_(fd), live_(live) {
  if (live_) Write(kHideCursor);
}

Screen::~Screen() {
  if (live_) Write(kShowCursor);
}

int Screen::width() const {
  winsize size{};
  if (::ioctl(fd_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultWidth;
  return size.ws_col;
}

int Screen::height() const {
  winsize size{};
  if (::ioctl(fd_, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return kDefaultHeight;
  return size.ws_row;
}

void Screen::Print(const std::string& line) {
  std::string text = Erase() + line + "\n";
  for (const std::string& row : block_) text += row + "\n";
  Write(text);
}

void Screen::Draw(std::vector<std::string> block) {
  // What has scrolled off the top cannot be reached again.
  if (static_cast<int>(block.size()) >= height()) block.resize(height() - 1);
  if (!live_ || block == block_) return;
  std::string text = Erase();
  for (const std::string& row : block) text += row + "\n";
  block_ = std::move(block);
  Write(text);
}

void Screen::Clear() {
  const std::string erase = Erase();
  block_.clear();
  if (!erase.empty()) Write(erase);
}

// Moves to the block's first line and erases from there. A terminal that was made narrower since
// has broken the lines that no longer fit.
std::string Screen::Erase() {
  if (block_.empty()) return "";
  const int columns = width();
  int lines = 0;
  for (const std::string& row : block_)
    lines += std::max(1, (DisplayWidth(row) + columns - 1) / columns);
  return fmt::format("\x1b[{}A{}", lines, kEraseBelow);
}

void Screen::Write(const std::string& text) {
  // A closed terminal must not end a training run: what cannot be written is not.
  (void)WriteAll(fd_, std::as_bytes(std::span(text.data(), text.size())), "terminal");
}

bool IsTerminal(int fd) {
  return ::isatty(fd) == 1 && env::GetString("TERM") != "dumb";
}

}  // namespace ringmaster::cli
