// Follows one job of a local cluster until it ends, and shows it.
#ifndef RINGMASTER_CLI_WATCH_H_
#define RINGMASTER_CLI_WATCH_H_

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/job_view.h"
#include "cli/run_directory.h"
#include "cli/screen.h"
#include "operator/local/local_cluster.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::cli {

// One thread uses it. References must outlive it.
class JobWatch {
 public:
  JobWatch(local::LocalCluster& cluster, kube::ObjectKey key, const RunDirectory& directory,
           Screen& screen, bool resumed);

  // Looks once and shows what is new. True when the job has ended: succeeded, failed, or suspended
  // with no worker left.
  bool Refresh();

  // Waits until it is time to look again.
  void Wait();

  // Prints how the job ended, last of all the line that scripts compare, and returns the exit code.
  // `interrupted`: somebody asked it to stop, so that it is to go on.
  int Conclude(bool interrupted);

  // Leaves the view with this line.
  void Close(const std::string& line);

 private:
  void PrintHeader();
  void PrintEvents();
  void Say(const std::string& line);
  void PrintPlainProgress();
  int ConcludeSuccess(const training::v1alpha1::TrainingResult& result);
  int ConcludeFailure();

  local::LocalCluster& cluster_;
  const kube::ObjectKey key_;
  const RunDirectory& directory_;
  Screen& screen_;
  const bool resumed_;
  const bool colour_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();

  training::v1alpha1::TrainingJob job_;
  JobView view_;
  bool header_printed_ = false;
  std::map<std::string, int64_t> events_;  // name of each event told, with its count
  std::optional<double> accuracy_told_;
  std::chrono::steady_clock::time_point progress_told_;
};

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_WATCH_H_
