// The last lines of a program's output, for the message of its end. Not thread-safe.
#ifndef RINGMASTER_LAUNCHER_LOG_TAIL_H_
#define RINGMASTER_LAUNCHER_LOG_TAIL_H_

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace ringmaster::launcher {

class LogTail {
 public:
  // Keeps `lines` lines, of each the first `line_bytes`.
  LogTail(size_t lines, size_t line_bytes) : lines_(lines), line_bytes_(line_bytes) {}

  // Takes output as it comes, cut anywhere.
  void Append(std::string_view bytes);
  // The lines, joined by newlines; a last line without one counts. Bytes that are no UTF-8 are
  // replaced by '?': the text goes into messages and objects that take nothing else.
  std::string Text() const;
  void Clear();

 private:
  void EndLine();

  const size_t lines_;
  const size_t line_bytes_;
  std::deque<std::string> done_;
  std::string current_;
};

// `text` with each byte that is not part of valid UTF-8 replaced by '?'.
std::string AsUtf8(std::string_view text);

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_LOG_TAIL_H_
