// Structured logs: a constant message, and what varies as keys and values.
//
//   log::Info("round announced", {{"job", key}, {"round", round}, {"members", 4}});
//   2026-11-21T03:31:29.123Z info  round announced  job=default/digits round=3 members=4
//
// Lines go to standard error, whole, from any thread. The level comes from RINGMASTER_LOG (debug,
// info, warning, error; info by default).
#ifndef RINGMASTER_COMMON_LOG_H_
#define RINGMASTER_COMMON_LOG_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "absl/status/status.h"

namespace ringmaster::log {

enum class Level { kDebug, kInfo, kWarning, kError };

// One key with its value, turned into text.
class Field {
 public:
  template <typename T>
  Field(std::string_view key, const T& value) : key_(key), value_(fmt::format("{}", value)) {}
  Field(std::string_view key, const absl::Status& value) : key_(key), value_(value.ToString()) {}

  std::string_view key() const { return key_; }
  const std::string& value() const { return value_; }

 private:
  std::string_view key_;
  std::string value_;
};

using Fields = std::initializer_list<Field>;

void Debug(std::string_view message, Fields fields = {});
void Info(std::string_view message, Fields fields = {});
void Warning(std::string_view message, Fields fields = {});
void Error(std::string_view message, Fields fields = {});

void SetLevel(Level level);
Level ParseLevel(std::string_view name, Level otherwise);

// Sends the lines to a file instead of standard error (the command's own screen must stay clean).
// Appends.
absl::Status ToFile(const std::string& path);

// The line without its time and level: values with spaces or quotes are quoted.
std::string FormatLine(std::string_view message, Fields fields);

}  // namespace ringmaster::log

#endif  // RINGMASTER_COMMON_LOG_H_
