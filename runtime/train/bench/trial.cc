#include "runtime/train/bench/trial.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/status.h"
#include "common/text.h"
#include "runtime/device/available_memory.h"
#include "runtime/device/threads.h"
#include "runtime/train/bench/synthetic_data.h"

namespace ringmaster::train::bench {
namespace {

// Asked before the samples are drawn: what does not fit is refused at once, instead of being ended
// by the system when it has filled the memory.
absl::Status CheckFits(Workload& workload, uint32_t distinct, kernels::Selection kernels) {
  const size_t drawn = SyntheticBytes(workload.train().format(), distinct);
  std::optional<device::MemoryRoom> room;
  if (const auto available = device::AvailableMemory())
    room = {.available = std::max<int64_t>(0, *available - static_cast<int64_t>(drawn))};
  const absl::Status fits = workload.CheckModel(
      kernels, room, "ask for a smaller batch (--batch) or for more shards of it (--shards)");
  if (!absl::IsResourceExhausted(fits)) return fits;
  return Annotate(fits, fmt::format("beside {} for {} samples", WithUnit(drawn),
                                    WithCommas(static_cast<int64_t>(distinct))));
}

}  // namespace

namespace config = training::v1alpha1;

absl::StatusOr<std::unique_ptr<Trial>> Trial::Make(Subject subject, uint32_t distinct,
                                                   uint32_t samples, kernels::Selection kernels) {
  auto kept = std::make_unique<Subject>(std::move(subject));
  RM_RETURN_IF_ERROR(device::SetThreadCount(kept->config.threads_per_worker));
  config::Batch& batch = kept->config.batch;
  const int shards = batch.shards.value_or(1);
  if (shards > 0 && batch.size % shards != 0) {
    return absl::InvalidArgumentError(
        fmt::format("a batch of {} cannot be cut into {} shards of one size", batch.size, shards));
  }
  // Without shards the only worker computes all of the batch at once.
  batch.shards = std::max(shards, 1);
  Workload workload =
      Workload::Over(kept->config, MakeSyntheticData(kept->samples, distinct, samples));
  RM_RETURN_IF_ERROR(CheckFits(workload, distinct, kernels));
  // The worker refers to the workload, which therefore has its place first.
  std::unique_ptr<Trial> trial(new Trial(std::move(kept), std::move(workload)));
  RM_ASSIGN_OR_RETURN(trial->worker_, LoneWorker::Create(trial->workload_, kernels));
  return trial;
}

}  // namespace ringmaster::train::bench
