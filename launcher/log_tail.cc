#include "launcher/log_tail.h"

#include <algorithm>
#include <cstdint>

namespace ringmaster::launcher {
namespace {

// Bytes of the valid UTF-8 sequence at the beginning of `text` (RFC 3629); 0 when there is none.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond the last code point.
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
      (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f))
    return 0;
  return length;
}

}  // namespace

void LogTail::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const std::string_view part = bytes.substr(0, newline);
    current_.append(part.substr(0, line_bytes_ - std::min(line_bytes_, current_.size())));
    if (newline == std::string_view::npos) return;
    EndLine();
    bytes.remove_prefix(newline + 1);
  }
}

void LogTail::EndLine() {
  done_.push_back(std::move(current_));
  current_.clear();
  if (done_.size() > lines_) done_.pop_front();
}

std::string LogTail::Text() const {
  std::string text;
  const size_t skip = !current_.empty() && done_.size() == lines_ ? 1 : 0;
  for (size_t i = skip; i < done_.size(); ++i) text += done_[i] + '\n';
  text += current_;
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return AsUtf8(text);
}

void LogTail::Clear() {
  done_.clear();
  current_.clear();
}

std::string AsUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    if (length == 0) {
      out += '?';
      text.remove_prefix(1);
      continue;
    }
    out.append(text.substr(0, length));
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace ringmaster::launcher
