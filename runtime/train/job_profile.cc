#include "runtime/train/job_profile.h"

#include <string>

#include <fmt/format.h>

#include "common/file.h"
#include "common/status.h"
#include "common/text.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/device/threads.h"
#include "runtime/train/lone_worker.h"
#include "runtime/train/step_profile.h"
#include "runtime/train/step_trace.h"

namespace ringmaster::train {
namespace {

constexpr double kSeconds = 2;
constexpr int kTracedSteps = 3;

// "lenet-bn, 61,514 parameters: batch 64 in 4 shards, 1 thread"
std::string Heading(const Workload& workload) {
  std::string text = fmt::format("{}: batch {}", workload.Describe(), workload.batch());
  if (const int shards = workload.config().batch.shards.value_or(0); shards > 0)
    text += fmt::format(" in {}", WithNoun(shards, "shard"));
  return text + fmt::format(", {}", WithNoun(device::ThreadCount(), "thread"));
}

std::string Text(const Workload& workload, const StepProfile& profile) {
  const double seconds = profile.times.all();
  return fmt::format("{}\na step of one worker takes {} (mean of {}): {:.1f} samples/s\n\n{}",
                     Heading(workload), WithTimeUnit(seconds), WithCommas(profile.steps),
                     static_cast<double>(workload.batch()) / seconds, Table(profile));
}

}  // namespace

absl::Status ProfileSteps(const Workload& workload, kernels::Selection kernels,
                          const std::filesystem::path& folder) {
  RM_RETURN_IF_ERROR(MakeDirectories(folder));
  RM_ASSIGN_OR_RETURN(const auto worker, LoneWorker::Create(workload, kernels));
  RM_RETURN_IF_ERROR(worker->Step());  // prepares the kernels
  RM_ASSIGN_OR_RETURN(const StepProfile profile, TakeProfile(*worker, kSeconds));
  RM_RETURN_IF_ERROR(WriteFileAtomically(folder / "profile.txt", Text(workload, profile)));
  return WriteTrace(
      *worker, {.file = folder / "trace.json", .title = Heading(workload), .steps = kTracedSteps});
}

}  // namespace ringmaster::train
