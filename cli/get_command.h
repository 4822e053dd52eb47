// `ringmaster get [JOB]`: the jobs under the current directory, whether they run or not.
#ifndef RINGMASTER_CLI_GET_COMMAND_H_
#define RINGMASTER_CLI_GET_COMMAND_H_

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/clock.h"

namespace ringmaster::cli {

struct GetOptions {
  std::string job;      // all where empty
  std::string output;   // "" for a table, "json" for the whole object
  bool events = false;  // the job's events instead
};

// Prints to standard output. Returns the exit code: 66 when there is no such job. Without a name a
// job that cannot be read is named on standard error and the others are shown.
int Get(const GetOptions& options);

// Columns beside those that `kubectl get tj` shows.
struct JobColumns {
  bool ns = false;    // in front: the namespace
  bool wide = false;  // behind: round and newest checkpoint
};

// The columns that `kubectl get tj` shows, header first. Pure.
std::string JobTable(const std::vector<nlohmann::json>& jobs, Time now,
                     const JobColumns& columns = {});

// LAST SEEN, TYPE, REASON, MESSAGE, in the order of time. Pure.
std::string EventTable(const std::vector<nlohmann::json>& events, Time now);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_GET_COMMAND_H_
