// `kubectl ringmaster logs JOB`: what the workers of a job have written, by rank or by worker.
#ifndef RINGMASTER_CLI_KUBECTL_LOGS_COMMAND_H_
#define RINGMASTER_CLI_KUBECTL_LOGS_COMMAND_H_

#include <optional>
#include <string>

#include "cli/kubectl/connection.h"

namespace ringmaster::cli::kubectl {

struct LogsOptions {
  std::string job;
  std::optional<int> rank;    // the worker that has it in the present round
  std::optional<int> worker;  // one worker, by its index; all where neither is given
  std::string container;      // empty: the pod's first, which is the worker's
  int tail = -1;              // the last lines of each log; all where negative
  bool follow = false;        // go on, also with pods that replace others, until the job ends
  bool previous = false;      // of the pods before the present ones
  bool timestamps = false;
};

// Prints to standard output, each line behind its pod's name where there are several. Returns the
// exit code: 66 when there is no such job, worker or rank.
int Logs(const ClusterFlags& flags, const LogsOptions& options);

}  // namespace ringmaster::cli::kubectl

#endif  // RINGMASTER_CLI_KUBECTL_LOGS_COMMAND_H_
