// `kubectl ringmaster get [JOB]` and `kubectl ringmaster events JOB`: what there is, and what
// happened to it.
#ifndef RINGMASTER_CLI_KUBECTL_GET_COMMAND_H_
#define RINGMASTER_CLI_KUBECTL_GET_COMMAND_H_

#include <string>

#include "cli/kubectl/connection.h"

namespace ringmaster::cli::kubectl {

struct GetOptions {
  std::string job;     // all where empty
  std::string output;  // "" for a table or, of one job, its details; json, yaml, name, wide
  bool all_namespaces = false;
};

// Prints to standard output. Returns the exit code.
int Get(const ClusterFlags& flags, const GetOptions& options);

struct EventsOptions {
  std::string job;
  std::string output;  // "" for a table; json, yaml
};

// Also those of a job that has been deleted, as long as the cluster keeps them.
int Events(const ClusterFlags& flags, const EventsOptions& options);

}  // namespace ringmaster::cli::kubectl

#endif  // RINGMASTER_CLI_KUBECTL_GET_COMMAND_H_
