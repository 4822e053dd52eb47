// Text and tables as people read them on a terminal.
#ifndef RINGMASTER_CLI_TEXT_H_
#define RINGMASTER_CLI_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"

namespace ringmaster::cli {

// How many columns a UTF-8 text takes, counting every code point as one and colour sequences as
// none.
int DisplayWidth(std::string_view text);

// Cut to at most `width` columns; what is left of a cut text ends in "…".
std::string Truncate(std::string_view text, int width);

// Broken between words where it is wider than `width`; the lines after the first are indented by
// two columns more than it. A word that is wider stays whole.
std::vector<std::string> Wrap(std::string_view text, int width);

// A table with columns two spaces apart, every cell left-aligned, no trailing blanks. The first row
// is the header.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

// A message of several lines (a worker's last ones) as the last cell of a table's row: the lines
// after the first are indented.
std::string LastCell(std::string message);

// How long ago `time` was, "–" where it is not known. What a clock ahead of this machine's wrote is
// "0.0 s" old.
std::string Ago(const std::optional<Time>& time, Time now);

// A bar of `width` columns of which `share` (0 to 1) is full.
std::string ProgressBar(double share, int width);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_TEXT_H_
