// `kubectl ringmaster`: the command as a plugin of kubectl, for jobs on the cluster that kubectl
// talks to. `ringmaster` itself is for jobs of this machine.
#ifndef RINGMASTER_CLI_KUBECTL_PLUGIN_H_
#define RINGMASTER_CLI_KUBECTL_PLUGIN_H_

#include <string_view>

namespace ringmaster::cli::kubectl {

// What kubectl looks for on PATH: the plugin, and the program that completes its command lines.
inline constexpr std::string_view kPluginName = "kubectl-ringmaster";
inline constexpr std::string_view kCompleterName = "kubectl_complete-ringmaster";

// The plugin's main function. Returns the exit code.
int Main(int argc, char** argv, const char* version);

// The completer's: prints what the last of the arguments may become, a line each, and then what the
// shell shall do with it, ":4" (no names of files) or ":0". Always returns 0: a shell is no place
// for errors.
int Complete(int argc, char** argv);

}  // namespace ringmaster::cli::kubectl

#endif  // RINGMASTER_CLI_KUBECTL_PLUGIN_H_
