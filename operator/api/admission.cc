#include "operator/api/admission.h"

#include <nlohmann/json.hpp>

#include "proto/ringmaster/training/v1alpha1/training_job.api.h"
#include "proto/schema/check.h"

namespace ringmaster::api {

using training::v1alpha1::SchemaOf;
using training::v1alpha1::TrainingJob;

absl::Status AdmitTrainingJob(nlohmann::json& object, const nlohmann::json* current) {
  auto problems = schema::CheckAndDefault(SchemaOf<TrainingJob>(), object);
  if (problems.empty() && current != nullptr)
    problems = schema::CheckUpdate(SchemaOf<TrainingJob>(), *current, object);
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(schema::FormatProblems(problems));
}

}  // namespace ringmaster::api
