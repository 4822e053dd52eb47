// What the schema cannot say about a TrainingJob: conditions between values that need arithmetic,
// or knowledge of what a network is. `ringmaster validate` and `run` report them before anything
// starts; on a cluster, where a CRD alone admits objects, the reconciler reports them in a
// condition. Pure functions; thread-safe.
#ifndef RINGMASTER_OPERATOR_API_VALIDATION_H_
#define RINGMASTER_OPERATOR_API_VALIDATION_H_

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "proto/ringmaster/training/v1alpha1/training_job.api.h"
#include "proto/schema/check.h"

namespace ringmaster::api {

// Every problem of a job that has passed the schema's check; derived defaults are applied to a copy
// first.
std::vector<schema::Problem> Validate(const training::v1alpha1::TrainingJob& job);

// The part of it that concerns spec.trainer alone; paths begin with "spec.trainer". Used by
// Validate.
std::vector<schema::Problem> ValidateTrainer(const training::v1alpha1::TrainerConfig& trainer);

// Why no evaluation is made while it trains, as the end of a message; empty where there are some.
std::string WhyNeverEvaluated(const training::v1alpha1::TrainerConfig& trainer);

// What the network sees of a sample of `data.csv`, which must be set.
std::vector<std::int64_t> SampleShape(const training::v1alpha1::Data& data);

// The part of that which concerns a list of layers; paths begin with
// "spec.trainer.model.sequential". A layer that does not fit what reaches it is named with both.
// Used by ValidateTrainer.
std::vector<schema::Problem> ValidateLayers(const training::v1alpha1::Sequential& model,
                                            const training::v1alpha1::Data& data);

// The part of it that concerns the pod template; paths begin with "spec.workers.template". Whoever
// takes the pods checks the rest. Used by Validate.
std::vector<schema::Problem> ValidateTemplate(const nlohmann::json& pod_template);

}  // namespace ringmaster::api

#endif  // RINGMASTER_OPERATOR_API_VALIDATION_H_
