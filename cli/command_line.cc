#include "cli/command_line.h"

#include <charconv>
#include <cstdio>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "common/contract.h"
#include "common/env.h"
#include "common/status.h"

namespace ringmaster::cli {

CLI::Validator Whole(int least) {
  return CLI::Validator(
      [least](const std::string& text) -> std::string {
        int value = 0;
        const char* end = text.data() + text.size();
        const auto parsed = std::from_chars(text.data(), end, value);
        if (parsed.ec != std::errc() || parsed.ptr != end)
          return fmt::format("'{}' is not a whole number", text);
        return value < least ? fmt::format("{} is less than {}", value, least) : "";
      },
      "");
}

std::optional<int> ParseCommandLine(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? contract::kExitOk : contract::kExitUsage;
  }
  if (const absl::Status status = env::CheckAll(); !status.ok()) {
    fmt::print(stderr, "{}\n", Message(status));
    return contract::kExitUsage;
  }
  return std::nullopt;
}

}  // namespace ringmaster::cli
