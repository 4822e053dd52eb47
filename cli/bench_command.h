// `ringmaster bench NAME ...`: runs ringmaster-bench-NAME, a program of its own beside this one,
// because what it measures is the runtime's, which this program does not contain.
#ifndef RINGMASTER_CLI_BENCH_COMMAND_H_
#define RINGMASTER_CLI_BENCH_COMMAND_H_

#include <string>
#include <vector>

namespace ringmaster::cli {

// Becomes that program, with `arguments`. Returns, with an exit code, only if it cannot.
int Bench(const std::string& name, std::vector<std::string> arguments);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_BENCH_COMMAND_H_
