#include "tests/scenarios/script.h"

#include <cstdlib>

#include <fmt/format.h>

#include "common/status.h"

namespace ringmaster::scenarios {
namespace {

constexpr std::string_view kSeparator = "----";
constexpr std::string_view kIndent = "  ";

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return lines;
}

// Words of a command line; double quotes keep spaces together and are dropped.
absl::StatusOr<std::vector<std::string>> Words(const std::string& line, int number) {
  std::vector<std::string> words;
  bool quoted = false;
  bool open = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
      if (!open) words.emplace_back();
      open = true;
    } else if (c == ' ' && !quoted) {
      open = false;
    } else {
      if (!open) words.emplace_back();
      open = true;
      words.back() += c;
    }
  }
  if (quoted) return absl::InvalidArgumentError(fmt::format("line {}: open quote", number));
  return words;
}

absl::StatusOr<Command> ParseCommand(const std::string& line, int number) {
  RM_ASSIGN_OR_RETURN(const std::vector<std::string> words, Words(line, number));
  Command command{.line = number, .name = words.front()};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (equals == std::string::npos) {
      command.words.push_back(words[i]);
    } else {
      command.options[words[i].substr(0, equals)] = words[i].substr(equals + 1);
    }
  }
  return command;
}

}  // namespace

std::string Command::Option(const std::string& key, const std::string& otherwise) const {
  const auto found = options.find(key);
  return found == options.end() ? otherwise : found->second;
}

std::int64_t Command::Number(const std::string& key, std::int64_t otherwise) const {
  const auto found = options.find(key);
  return found == options.end() ? otherwise : std::strtoll(found->second.c_str(), nullptr, 10);
}

double Command::Real(const std::string& key, double otherwise) const {
  const auto found = options.find(key);
  return found == options.end() ? otherwise : std::strtod(found->second.c_str(), nullptr);
}

absl::StatusOr<std::vector<Command>> ParseCommands(std::string_view text, int first_line) {
  std::vector<Command> commands;
  int number = first_line;
  for (const std::string& line : Lines(text)) {
    if (line.starts_with(kIndent)) {
      if (commands.empty()) {
        return absl::InvalidArgumentError(fmt::format("line {}: input without a command", number));
      }
      commands.back().input += line.substr(kIndent.size()) + "\n";
    } else if (!line.empty() && !line.starts_with("#")) {
      RM_ASSIGN_OR_RETURN(Command command, ParseCommand(line, number));
      commands.push_back(std::move(command));
    }
    ++number;
  }
  return commands;
}

absl::StatusOr<std::vector<Block>> ParseScript(std::string_view text) {
  std::vector<Block> blocks;
  const std::vector<std::string> lines = Lines(text);
  std::size_t at = 0;
  while (at < lines.size()) {
    Block block;
    while (at < lines.size() && (lines[at].empty() || lines[at].starts_with("#"))) {
      block.heading += lines[at++] + "\n";
    }
    const int first = static_cast<int>(at) + 1;
    while (at < lines.size() && lines[at] != kSeparator) block.text += lines[at++] + "\n";
    if (block.text.empty()) {
      if (!block.heading.empty()) blocks.push_back(std::move(block));
      break;
    }
    if (at == lines.size()) {
      return absl::InvalidArgumentError(fmt::format("line {}: the block has no ----", first));
    }
    ++at;
    while (at < lines.size() && !lines[at].empty()) block.output += lines[at++] + "\n";
    RM_ASSIGN_OR_RETURN(block.commands, ParseCommands(block.text, first));
    blocks.push_back(std::move(block));
  }
  return blocks;
}

std::string FormatScript(const std::vector<Block>& blocks) {
  std::string text;
  for (const Block& block : blocks) {
    text += block.heading;
    if (!block.text.empty()) text += fmt::format("{}{}\n{}", block.text, kSeparator, block.output);
  }
  return text;
}

}  // namespace ringmaster::scenarios
