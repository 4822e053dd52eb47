// Programs that do what belongs to the runtime, which this program does not contain. Beside it lie
// ringmaster-bench-NAME for `ringmaster bench NAME`, ringmaster-explain-collectives,
// ringmaster-schedule-plot and ringmaster-train.
#ifndef RINGMASTER_CLI_COMPANION_H_
#define RINGMASTER_CLI_COMPANION_H_

#include <string>
#include <vector>

namespace ringmaster::cli {

// Becomes the program of that name beside this one, with `arguments`. Returns, with an exit code,
// only if it cannot.
int BecomeCompanion(const std::string& name, std::vector<std::string> arguments);

// The same with any program, by its path.
int BecomeProgram(std::string path, std::vector<std::string> arguments);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_COMPANION_H_
