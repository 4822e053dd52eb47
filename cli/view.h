// What `ringmaster run` shows of a job: pure functions from what is known to lines of text.
//
// On a terminal a block of a few lines is redrawn in place below the events; elsewhere (--plain, a
// pipe, CI) events and progress are lines of their own.
#ifndef RINGMASTER_CLI_VIEW_H_
#define RINGMASTER_CLI_VIEW_H_

#include <optional>
#include <string>
#include <vector>

#include "common/clock.h"

namespace ringmaster::cli {

enum class WorkerState { kStarting, kRunning, kLost, kDone };

struct WorkerView {
  int index = 0;
  WorkerState state = WorkerState::kStarting;
  double step_seconds = 0;
  std::string note;  // why it is lost: "killed (SIGKILL)"
};

// A job at one moment.
struct JobView {
  std::string name;
  std::string place = "on this machine";  // where the workers are
  std::string model;  // "lenet-bn, 61,514 parameters"; empty until a worker has said it
  int batch = 0;
  int shards = 0;  // 0 for the plain ring
  int64_t seed = 0;
  int workers = 0;
  std::string state;  // status.state
  int64_t step = 0;
  int64_t total_steps = 0;
  double epoch = 0;
  double epochs = 0;  // 0 where the manifest counts steps
  double loss = 0;
  std::optional<double> accuracy;
  // What the data is judged by beside accuracy: "perplexity 7.83". Empty before the first
  // evaluation, absent where there is nothing.
  std::optional<std::string> measure;
  double samples_per_second = 0;
  int64_t skipped_steps = 0;  // for a loss that is not finite
  std::vector<WorkerView> members;
};

// "digits  lenet-bn, 61,514 parameters · batch 64 in 4 shards · 4 workers on this machine · seed 7"
std::string HeaderLine(const JobView& job);

// "epoch 12/20  step 268/448   loss 0.081   acc 97.2 %   9,410 samples/s   eta 6 s". Says the state
// where no step was made yet, and first of all where the job does not train.
std::string ProgressLine(const JobView& job);

// "  w0 ● 4.1 ms   w1 ● 4.2 ms   w2 ✗ killed (SIGKILL)": as many lines as the workers take, but
// few; the last one says how many are not shown.
std::vector<std::string> WorkerLines(const JobView& job, int width, bool colour);

// The block that is redrawn, each line cut to `width` columns.
std::vector<std::string> LiveBlock(const JobView& job, int width, bool colour);

// The seconds that are left at the present rate; nothing before a rate is known.
std::optional<Duration> TimeLeft(const JobView& job);

}  // namespace ringmaster::cli

#endif  // RINGMASTER_CLI_VIEW_H_
