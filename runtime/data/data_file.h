// Reading a data file whole, and saying where in it a mistake is. For the data sets of this folder.
// Thread-safe.
#ifndef RINGMASTER_RUNTIME_DATA_DATA_FILE_H_
#define RINGMASTER_RUNTIME_DATA_DATA_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ringmaster::data {

// Data sets live in memory, so a file has a bound: a larger one is refused by name before it is
// read.
inline constexpr size_t kMaxFileBytes = size_t{2} << 30;

// A message quotes at most so much of a wrong cell or line.
inline constexpr size_t kMaxQuoted = 32;

struct DataFile {
  std::string path;     // as messages name it: `workspace`/`path`, or `path` if that is absolute
  std::string content;  // never empty

  // kInvalidArgument "path: message".
  absl::Status Error(std::string_view message) const;
  // kInvalidArgument "path:line: message", lines counted from 1.
  absl::Status ErrorAt(size_t line, std::string_view message) const;
};

// Reads a regular file. Blocks on the disk. Errors as data::Load has them.
absl::StatusOr<DataFile> ReadDataFile(const std::string& path, const std::string& workspace);

// SHA-256, in hex, of a file's content and a line that says how it was cut.
std::string Fingerprint(std::string_view content, std::string_view settings);

// `text` as messages show it: in quotes, cut to kMaxQuoted, unprintable bytes as '?'.
std::string Quote(std::string_view text);

}  // namespace ringmaster::data

#endif  // RINGMASTER_RUNTIME_DATA_DATA_FILE_H_
