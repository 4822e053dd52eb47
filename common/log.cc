#include "common/log.h"

#include <memory>
#include <mutex>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "common/env.h"

namespace ringmaster::log {
namespace {

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

void Prepare(spdlog::logger& logger, spdlog::level::level_enum level) {
  logger.set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %-7l %v", spdlog::pattern_time_type::utc);
  logger.set_level(level);
  logger.flush_on(spdlog::level::debug);
}

// The logger may be replaced while other threads write, so each write holds its own reference.
std::mutex mutex;

std::shared_ptr<spdlog::logger>& Current() {
  static auto* logger = [] {
    auto made = std::make_shared<spdlog::logger>("ringmaster",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    Prepare(*made, ToSpdlog(ParseLevel(env::GetString("RINGMASTER_LOG"), Level::kInfo)));
    return new std::shared_ptr<spdlog::logger>(made);
  }();
  return *logger;
}

std::shared_ptr<spdlog::logger> Logger() {
  std::lock_guard lock(mutex);
  return Current();
}

void Write(Level level, std::string_view message, Fields fields) {
  const auto logger = Logger();
  if (logger->should_log(ToSpdlog(level)))
    logger->log(ToSpdlog(level), FormatLine(message, fields));
}

std::string Quoted(const std::string& value) {
  if (!value.empty() && value.find_first_of(" \"\n=") == std::string::npos) return value;
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c == '\n' ? ' ' : c;
  }
  return text + "\"";
}

}  // namespace

void Debug(std::string_view message, Fields fields) {
  Write(Level::kDebug, message, fields);
}
void Info(std::string_view message, Fields fields) {
  Write(Level::kInfo, message, fields);
}
void Warning(std::string_view message, Fields fields) {
  Write(Level::kWarning, message, fields);
}
void Error(std::string_view message, Fields fields) {
  Write(Level::kError, message, fields);
}

void SetLevel(Level level) {
  Logger()->set_level(ToSpdlog(level));
}

Level ParseLevel(std::string_view name, Level otherwise) {
  if (name == "debug") return Level::kDebug;
  if (name == "info") return Level::kInfo;
  if (name == "warning") return Level::kWarning;
  if (name == "error") return Level::kError;
  return otherwise;
}

absl::Status ToFile(const std::string& path) {
  try {
    auto made = std::make_shared<spdlog::logger>(
        "ringmaster", std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
    std::lock_guard lock(mutex);
    Prepare(*made, Current()->level());
    Current() = made;
    return absl::OkStatus();
  } catch (const spdlog::spdlog_ex& error) {
    return absl::InternalError(error.what());
  }
}

std::string FormatLine(std::string_view message, Fields fields) {
  std::string line(message);
  const char* separator = "  ";
  for (const Field& field : fields) {
    line += fmt::format("{}{}={}", separator, field.key(), Quoted(field.value()));
    separator = " ";
  }
  return line;
}

}  // namespace ringmaster::log
