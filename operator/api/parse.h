// A manifest's text to a checked TrainingJob, with everything that is wrong said at once and by
// line.
//
//   broken.yaml:14: spec.workers.minReplicas: 9 is more than maxReplicas (8); lower it or raise
//   maxReplicas broken.yaml:22: spec.trainer.optimizer.sgd.momentun: unknown field; did you mean
//   momentum?
//
// Pure and thread-safe; reads no file.
#ifndef RINGMASTER_OPERATOR_API_PARSE_H_
#define RINGMASTER_OPERATOR_API_PARSE_H_

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "proto/ringmaster/training/v1alpha1/training_job.api.h"

namespace ringmaster::api {

struct ParseOptions {
  // Assignments in the manner of --set (set_path.h), applied in order before anything is checked.
  std::vector<std::string> set;
};

struct ParsedJob {
  // What to hand to the API: the manifest with `set` and the schema's defaults, without a status.
  nlohmann::json object;
  // The same without the defaults: what was written, for a server that fills them in itself and
  // notes who owns which field.
  nlohmann::json written;
  // The same, decoded, with the derived defaults too (defaults.h): what to show and to compute
  // with, not to store.
  training::v1alpha1::TrainingJob job;
};

// kInvalidArgument: the message holds every problem, one "filename:line: path: message" a line.
// `filename` is for messages only.
absl::StatusOr<ParsedJob> ParseManifest(std::string_view text, std::string_view filename,
                                        const ParseOptions& options = {});

}  // namespace ringmaster::api

#endif  // RINGMASTER_OPERATOR_API_PARSE_H_
