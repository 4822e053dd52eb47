#include "operator/api/admission.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "proto/ringmaster/training/v1alpha1/training_job.api.h"
#include "proto/schema/check.h"

namespace ringmaster::api {

using training::v1alpha1::SchemaOf;
using training::v1alpha1::TrainingJob;

namespace {

// What was wrong already and has not been touched is not held against a change of something else,
// as on an API server since 1.30: otherwise nobody could say in the status what is wrong.
void ForgiveOld(const nlohmann::json& current, std::vector<schema::Problem>& problems) {
  nlohmann::json before = current;
  const auto old = schema::CheckAndDefault(SchemaOf<TrainingJob>(), before);
  std::erase_if(problems, [&](const schema::Problem& problem) {
    return std::find(old.begin(), old.end(), problem) != old.end();
  });
}

}  // namespace

absl::Status AdmitTrainingJob(nlohmann::json& object, const nlohmann::json* current) {
  auto problems = schema::CheckAndDefault(SchemaOf<TrainingJob>(), object);
  const bool valid = problems.empty();
  if (!valid && current != nullptr) ForgiveOld(*current, problems);
  if (valid && current != nullptr)
    problems = schema::CheckUpdate(SchemaOf<TrainingJob>(), *current, object);
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(schema::FormatProblems(problems));
}

}  // namespace ringmaster::api
