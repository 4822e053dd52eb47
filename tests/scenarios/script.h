// The scenario files' grammar.
//
//   # A comment, kept as it is.
//   apply
//     apiVersion: ...          indented lines are the input of the command above them
//   run
//   ----
//   create Pod digits-0-0      what the block's commands print, up to an empty line
//
// A block is one or more commands, `----`, and their output. A command is a name, words, and
// key=value pairs; values with spaces stand in double quotes.
#ifndef RINGMASTER_TESTS_SCENARIOS_SCRIPT_H_
#define RINGMASTER_TESTS_SCENARIOS_SCRIPT_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ringmaster::scenarios {

struct Command {
  int line = 0;  // in the file, from 1
  std::string name;
  std::vector<std::string> words;
  std::map<std::string, std::string> options;
  std::string input;  // the indented lines, less two spaces of indentation

  std::string Option(const std::string& key, const std::string& otherwise = "") const;
  std::int64_t Number(const std::string& key, std::int64_t otherwise) const;
  double Real(const std::string& key, double otherwise) const;
};

struct Block {
  std::string heading;  // comments and empty lines before the block
  std::string text;     // the commands as they stand in the file
  std::vector<Command> commands;
  std::string output;  // as it stands in the file
};

// kInvalidArgument names the line.
absl::StatusOr<std::vector<Block>> ParseScript(std::string_view text);

// The commands of a piece of text, without blocks.
absl::StatusOr<std::vector<Command>> ParseCommands(std::string_view text, int first_line = 1);

// The file with the outputs that stand in the blocks.
std::string FormatScript(const std::vector<Block>& blocks);

}  // namespace ringmaster::scenarios

#endif  // RINGMASTER_TESTS_SCENARIOS_SCRIPT_H_
