// What a CRD makes the API server do with a TrainingJob before it stores it, for the memory store:
// the schema's defaults, and the schema's refusals. Pure and thread-safe; quick enough to run under
// the store's lock.
//
//   store->SetAdmission(kube::kTrainingJob, [](kube::memory::AdmissionRequest& request) {
//     return api::AdmitTrainingJob(request.object, request.current);
//   });
#ifndef RINGMASTER_OPERATOR_API_ADMISSION_H_
#define RINGMASTER_OPERATOR_API_ADMISSION_H_

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"

namespace ringmaster::api {

// Fills in the schema's defaults in place. `current` is what is stored now, null on creation;
// against it immutable fields are checked, and a problem that it has as well is forgiven.
// kInvalidArgument lists every problem, one "path:
// message" a line; `object` is then to be thrown away.
absl::Status AdmitTrainingJob(nlohmann::json& object, const nlohmann::json* current);

}  // namespace ringmaster::api

#endif  // RINGMASTER_OPERATOR_API_ADMISSION_H_
