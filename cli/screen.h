// Where `ringmaster run` writes: lines that stay, and on a terminal a block below them that is
// redrawn in place. Not thread-safe: one thread writes.
#ifndef RINGMASTER_CLI_SCREEN_H_
#define RINGMASTER_CLI_SCREEN_H_

#include <string>
#include <vector>

namespace ringmaster::cli {

class Screen {
 public:
  // `fd` is written to. `live` redraws a block in place; without it Draw does nothing and only
  // lines are written.
  Screen(int fd, bool live);
  // Leaves the cursor visible and below what was written.
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool live() const { return live_; }
  // Columns of the terminal; 80 where it does not say.
  int width() const;
  // Lines of it; 24 where it does not say.
  int height() const;

  // Writes a line that stays, above the block.
  void Print(const std::string& line);

  // Replaces the block. Lines that the terminal has no room for are left out.
  void Draw(std::vector<std::string> block);

  // Removes the block.
  void Clear();

 private:
  std::string Erase();
  void Write(const std::string& text);

  const int fd_;
  const bool live_;
  std::vector<std::string> block_;
};

// Whether a live view makes sense on `fd`: a terminal that understands cursor movements.
bool IsTerminal(int fd);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_SCREEN_H_
