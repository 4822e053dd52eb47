#include "operator/api/defaults.h"

#include <algorithm>

#include "common/networks.h"

namespace ringmaster::api {

using namespace training::v1alpha1;  // NOLINT: every name here is one of the API's

std::int32_t DefaultShards(std::int32_t batch_size, std::int32_t max_replicas,
                           bool normalises_shards) {
  const std::int64_t fewest_samples = normalises_shards ? 32 : 8;
  for (const std::int64_t per_worker : {4, 2}) {
    const std::int64_t shards = per_worker * max_replicas;
    if (shards * fewest_samples <= batch_size) return static_cast<std::int32_t>(shards);
  }
  return max_replicas;
}

bool HasBatchNorm(const Model& model) {
  if (model.zoo) {
    const networks::Network* network = networks::Find(model.zoo->name);
    return network != nullptr && network->batch_norm;
  }
  if (!model.sequential) return false;
  const auto& layers = model.sequential->layers;
  return std::any_of(layers.begin(), layers.end(),
                     [](const Layer& layer) { return layer.batch_norm.has_value(); });
}

bool SynchronisesBatchNorm(const Model& model) {
  return model.batch_norm == BatchNormOver::kSynchronised;
}

void ApplyDerivedDefaults(TrainingJobSpec& spec) {
  Workers& workers = spec.workers;
  if (!workers.min_replicas) workers.min_replicas = workers.replicas;
  if (!workers.max_replicas) workers.max_replicas = workers.replicas;
  if (!spec.launch)
    spec.launch = Launch{.mode = spec.trainer ? LaunchMode::kNative : LaunchMode::kExec};
  if (spec.trainer && !spec.trainer->batch.shards) {
    const Model& model = spec.trainer->model;
    spec.trainer->batch.shards =
        DefaultShards(spec.trainer->batch.size, *workers.max_replicas,
                      HasBatchNorm(model) && !SynchronisesBatchNorm(model));
  }
}

}  // namespace ringmaster::api
