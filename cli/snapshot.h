// A job's objects as they are stored now, whether it runs or not.
//
// The process that runs the job has the journal to itself, so a copy of the file is read; a line
// that was being written is left out, as after a crash.
#ifndef RINGMASTER_CLI_SNAPSHOT_H_
#define RINGMASTER_CLI_SNAPSHOT_H_

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "cli/run_directory.h"

namespace ringmaster::cli {

class Snapshot {
 public:
  // kNotFound: no such job here; the message names those that are. kDataLoss: the journal is
  // damaged.
  static absl::StatusOr<Snapshot> Of(const RunDirectory& directory);

  const nlohmann::json& job() const { return job_; }
  const std::vector<nlohmann::json>& events() const { return events_; }

 private:
  nlohmann::json job_;
  std::vector<nlohmann::json> events_;
};

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_SNAPSHOT_H_
