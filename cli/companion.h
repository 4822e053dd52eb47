// Programs beside this one that do what belongs to the runtime, which this program does not
// contain: `ringmaster bench NAME` is ringmaster-bench-NAME, `ringmaster explain NAME`
// ringmaster-explain-NAME, `ringmaster schedule plot` ringmaster-schedule-plot.
#ifndef RINGMASTER_CLI_COMPANION_H_
#define RINGMASTER_CLI_COMPANION_H_

#include <string>
#include <vector>

namespace ringmaster::cli {

// Becomes that program, with `arguments`. Returns, with an exit code, only if it cannot.
int BecomeCompanion(std::string program, std::vector<std::string> arguments);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_COMPANION_H_
