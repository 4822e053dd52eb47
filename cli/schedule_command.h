// `ringmaster schedule plot job.yaml`: the learning rate and weight decay over a job's steps.
#ifndef RINGMASTER_CLI_SCHEDULE_COMMAND_H_
#define RINGMASTER_CLI_SCHEDULE_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

namespace ringmaster::cli {

struct SchedulePlotOptions {
  std::string manifest;
  std::vector<std::string> set;
  std::string svg;       // a file for a picture; none where empty
  std::string csv;       // a file for a table of every step; none where empty
  uint32_t samples = 0;  // in an epoch; those of the data where 0
};

// Reads and checks the manifest, then becomes ringmaster-schedule-plot. Returns, with an exit code,
// only if it cannot.
int SchedulePlot(const SchedulePlotOptions& options);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_SCHEDULE_COMMAND_H_
