// `ringmaster logs JOB`: what the workers of a local job have written.
#ifndef RINGMASTER_CLI_LOGS_COMMAND_H_
#define RINGMASTER_CLI_LOGS_COMMAND_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::cli {

struct LogsOptions {
  std::string job;
  std::optional<int> index;  // one worker; all where absent
  int tail = -1;             // the last lines of each file; all where negative
  bool follow = false;       // go on until the job's run has ended
};

// Prints to standard output, each line behind its pod's name where there are several. Returns the
// exit code: 66 when there is no such job or worker.
int Logs(const LogsOptions& options);

// The log files in `directory` of one worker, or of all: `<job>-<index>-<incarnation>.log`, in
// order of index and incarnation.
std::vector<std::filesystem::path> LogFiles(const std::filesystem::path& directory,
                                            const std::string& job, std::optional<int> index);

// The last `lines` lines of a text; all of it where negative.
std::string LastLines(const std::string& text, int lines);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_LOGS_COMMAND_H_
