// What the command lines of `ringmaster` and `kubectl ringmaster` have in common.
#ifndef RINGMASTER_CLI_COMMAND_LINE_H_
#define RINGMASTER_CLI_COMMAND_LINE_H_

#include <optional>

#include <CLI/CLI.hpp>

namespace ringmaster::cli {

inline constexpr char kSetHelp[] =
    "Set a field over the manifest: path=value, as in spec.trainer.epochs=3. May be repeated.";
inline constexpr char kWorkersHelp[] = "Number of workers, over spec.workers.replicas.";

// Checks that a value is a whole number from `least` on.
CLI::Validator Whole(int least);

// Parses, runs the callbacks of what was given, and checks the environment. The exit code where
// there is nothing more to do: help was asked for, or something is wrong and was said.
std::optional<int> ParseCommandLine(CLI::App& app, int argc, char** argv);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_COMMAND_LINE_H_
