// What can still be read of an object that its schema refuses. Pure functions; thread-safe.
#ifndef RINGMASTER_OPERATOR_API_SALVAGE_H_
#define RINGMASTER_OPERATOR_API_SALVAGE_H_

#include <vector>

#include <nlohmann/json.hpp>

#include "proto/ringmaster/training/v1alpha1/training_job.api.h"
#include "proto/schema/check.h"

namespace ringmaster::api {

// Takes the fields that the problems name out of `object`, so that what else is wrong can be found
// and what is right can be read. Items of lists stay: the others must keep their places.
void RemoveRefused(const std::vector<schema::Problem>& refused, nlohmann::json& object);

// A job as the operator has to take it.
struct StoredJob {
  // As far as it can be read: with problems, what they name is absent or as by default. Its
  // metadata is the object's own; derived defaults are applied.
  training::v1alpha1::TrainingJob job;
  // The schema's problems and then those of its meaning (validation.h). Empty: the job may run.
  std::vector<schema::Problem> problems;
};

// Reads an object of the API. A server whose CRD has this schema stores none that the schema
// refuses; one whose CRD is older, newer or mended by hand may, and the operator must be able to
// say so in the job's status. Never fails.
StoredJob ReadStored(const nlohmann::json& object);

// The same answer for a later object, with less work where only metadata and status differ from an
// earlier one, of which `read` was the answer: what the earlier one asked for is then not checked
// and decoded again.
StoredJob ReadStored(const nlohmann::json& object, const nlohmann::json& earlier,
                     const StoredJob& read);

}  // namespace ringmaster::api

#endif  // RINGMASTER_OPERATOR_API_SALVAGE_H_
