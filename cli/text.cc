#include "cli/text.h"

#include <algorithm>
#include <cmath>

namespace ringmaster::cli {
namespace {

constexpr std::string_view kEllipsis = "…";
constexpr std::string_view kFull = "━";
constexpr std::string_view kHalf = "╸";
constexpr std::string_view kEmpty = "─";

bool ContinuesCodePoint(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// The length in bytes of a colour sequence (ESC [ ... m) at the front of `text`; 0 if there is
// none.
size_t ColourLength(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const size_t end = text.find('m');
  return end == std::string_view::npos ? text.size() : end + 1;
}

}  // namespace

int DisplayWidth(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    if (const size_t colour = ColourLength(text); colour > 0) {
      text.remove_prefix(colour);
      continue;
    }
    if (!ContinuesCodePoint(text[0])) ++width;
    text.remove_prefix(1);
  }
  return width;
}

std::string Truncate(std::string_view text, int width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  std::string cut;
  bool coloured = false;
  for (int columns = 0; !text.empty();) {
    size_t length = ColourLength(text);
    if (length > 0) {
      coloured = true;
    } else {
      if (++columns >= width) break;
      for (length = 1; length < text.size() && ContinuesCodePoint(text[length]); ++length) {
      }
    }
    cut += text.substr(0, length);
    text.remove_prefix(length);
  }
  cut += kEllipsis;
  return coloured ? cut + "\x1b[0m" : cut;
}

std::vector<std::string> Wrap(std::string_view text, int width) {
  const size_t indent = std::min(text.find_first_not_of(' '), text.size());
  std::vector<std::string> lines{std::string(indent, ' ')};
  bool has_word = false;  // the last line
  for (size_t at = indent; at < text.size();) {
    const size_t word = std::min(text.find_first_not_of(' ', at), text.size());
    const size_t end = std::min(text.find(' ', word), text.size());
    const std::string_view piece = text.substr(at, end - at);
    if (has_word && DisplayWidth(lines.back()) + DisplayWidth(piece) > width) {
      lines.emplace_back(indent + 2, ' ');
      lines.back() += text.substr(word, end - word);
    } else {
      lines.back() += piece;
    }
    has_word = true;
    at = end;
  }
  return lines;
}

std::string FormatTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<int> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] - DisplayWidth(row[i]) + 2, ' ');
    }
    table += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return table;
}

std::string LastCell(std::string message) {
  for (std::size_t at = message.find('\n'); at != std::string::npos;
       at = message.find('\n', at + 1))
    message.replace(at, 1, "\n      ");
  return message;
}

std::string Ago(const std::optional<Time>& time, Time now) {
  return time ? FormatDuration(std::max(now - *time, Duration::zero())) : "–";
}

std::string ProgressBar(double share, int width) {
  const int halves = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width * 2));
  std::string bar;
  for (int i = 0; i < width; ++i)
    bar += 2 * i + 2 <= halves ? kFull : 2 * i + 1 == halves ? kHalf : kEmpty;
  return bar;
}

}  // namespace ringmaster::cli
