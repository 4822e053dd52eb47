// What the last word of a command line of `kubectl ringmaster` may become.
#ifndef RINGMASTER_CLI_KUBECTL_COMPLETION_H_
#define RINGMASTER_CLI_KUBECTL_COMPLETION_H_

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace ringmaster::cli::kubectl {

enum class Wanted {
  kWords,      // those in Completion::words
  kFile,       // the name of a file: the shell's own business
  kJob,        // a job of the cluster
  kNamespace,  // a namespace of it
  kFreeText,   // nobody can know
};

struct Completion {
  Wanted wanted = Wanted::kFreeText;
  std::vector<std::string> words;  // that begin with what was typed
};

// `words` are what stands behind "kubectl ringmaster", the last one, perhaps empty, is being typed.
// Pure.
Completion CompletionOf(const CLI::App& app, const std::vector<std::string>& words);

// The value that a flag has on the command line so far; empty where it has none. Pure.
std::string ValueOf(const std::vector<std::string>& words, const std::vector<std::string>& flags);

}  // namespace ringmaster::cli::kubectl

#endif  // RINGMASTER_CLI_KUBECTL_COMPLETION_H_
