// Defaults that follow from other fields, which a schema cannot say. They are computed whenever a
// job is read and are never stored: a stored maxReplicas would forbid the scaling that its absence
// allows. Pure functions; thread-safe.
#ifndef RINGMASTER_OPERATOR_API_DEFAULTS_H_
#define RINGMASTER_OPERATOR_API_DEFAULTS_H_

#include <cstdint>

#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::api {

// Fills in what is absent: workers.minReplicas and maxReplicas (replicas), launch (mode Native with
// spec.trainer, Exec without), trainer.batch.shards (DefaultShards). What is there stays.
// Idempotent.
void ApplyDerivedDefaults(training::v1alpha1::TrainingJobSpec& spec);

// Virtual shards for a batch of `batch_size` samples: the largest of 4, 2, 1 × max_replicas that
// leaves at least 8 samples a shard (32 where batch norm's statistics are a shard's), never fewer
// than max_replicas. Both numbers are at least 1; the result is more than batch_size only where
// max_replicas is.
std::int32_t DefaultShards(std::int32_t batch_size, std::int32_t max_replicas,
                           bool normalises_shards);

// Whether the network has batch norms, as far as its description says.
bool HasBatchNorm(const training::v1alpha1::Model& model);

// Whether they normalise over the whole batch of a step instead of a shard.
bool SynchronisesBatchNorm(const training::v1alpha1::Model& model);

}  // namespace ringmaster::api

#endif  // RINGMASTER_OPERATOR_API_DEFAULTS_H_
