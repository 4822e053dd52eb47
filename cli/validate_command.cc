#include "cli/validate_command.h"

#include <cstdio>

#include <fmt/format.h>

#include "cli/failure.h"
#include "cli/manifest.h"
#include "cli/text.h"
#include "common/contract.h"
#include "operator/api/defaults.h"

namespace ringmaster::cli {
namespace {

namespace v1 = training::v1alpha1;

// With S shards over W workers the busiest has ceil(S / W); the others wait for it.
double UsefulShare(int shards, int workers) {
  const int busiest = (shards + workers - 1) / workers;
  return static_cast<double>(shards) / (static_cast<double>(workers) * busiest);
}

std::string ShardsTable(int shards, int minimum, int maximum) {
  std::vector<std::vector<std::string>> rows{{"  WORKERS", "SHARDS EACH", "USEFUL"}};
  for (int workers = 1; workers <= maximum; ++workers) {
    if (workers > 1 && workers < minimum) continue;
    const int least = shards / workers;
    const int most = (shards + workers - 1) / workers;
    rows.push_back({fmt::format("  {}", workers),
                    least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most),
                    fmt::format("{:.0f} %", UsefulShare(shards, workers) * 100)});
  }
  return FormatTable(rows);
}

}  // namespace

std::string ExplainJob(const std::string& name, const v1::TrainingJob& job) {
  const v1::Workers& workers = job.spec.workers;
  const int maximum = workers.max_replicas.value_or(workers.replicas);
  std::string text = fmt::format("{}: valid; {} workers, from {} to {}\n", name, workers.replicas,
                                 workers.min_replicas.value_or(workers.replicas), maximum);
  if (!job.spec.trainer) return text;
  const v1::Batch& batch = job.spec.trainer->batch;
  const int shards = batch.shards.value_or(0);
  if (shards == 0) {
    return text + fmt::format(
                      "batch {} over the plain ring: the order of addition, and so the weights' "
                      "last bits, change with the "
                      "number of workers\n",
                      batch.size);
  }
  const int least = batch.size / shards;
  const int most = (batch.size + shards - 1) / shards;
  const std::string samples =
      least == most ? fmt::format("{}", most) : fmt::format("{} or {}", least, most);
  const v1::Gradients& gradients = job.spec.trainer->gradients;
  text +=
      fmt::format("batch {} in {} virtual shards of {} samples: {}\n", batch.size, shards, samples,
                  gradients.top_k || gradients.one_bit
                      ? "with error feedback the weights depend on the workers"
                      : fmt::format("the same bits for 1 to {} workers", shards));
  if (api::SynchronisesBatchNorm(job.spec.trainer->model)) {
    text += fmt::format(
        "batch norm normalises over the {} samples of the batch; a worker holds the values of all "
        "of its shards at once\n",
        batch.size);
  } else if (api::HasBatchNorm(job.spec.trainer->model)) {
    text += fmt::format("batch norm normalises over the {} samples of a shard\n", samples);
  }
  return text + ShardsTable(shards, workers.min_replicas.value_or(1), std::min(maximum, shards));
}

int Validate(const std::string& manifest, const std::vector<std::string>& set) {
  const auto parsed = ReadManifest(manifest, set);
  if (!parsed.ok()) return FailWith(parsed.status());
  fmt::print("{}", ExplainJob(parsed->object["metadata"]["name"].get<std::string>(), parsed->job));
  return contract::kExitOk;
}

}  // namespace ringmaster::cli
