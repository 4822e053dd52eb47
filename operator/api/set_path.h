// `--set path=value`: one field of a manifest, overridden on the command line. Pure and
// thread-safe.
#ifndef RINGMASTER_OPERATOR_API_SET_PATH_H_
#define RINGMASTER_OPERATOR_API_SET_PATH_H_

#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"

namespace ringmaster::api {

// Sets the field of a TrainingJob that `assignment` names: "spec.trainer.epochs=3",
// "spec.workers.replicas=2", "spec.trainer.model.sequential.layers[0].conv2d.channels=8",
// "metadata.labels.team=vision". The value is read as the field's type asks: text as it is, the
// rest as YAML ("spec.trainer.model={zoo: {name: lenet-bn}}"); null removes the field. Objects on
// the way are made where they are missing; a list grows by one item at its end.
//
// kInvalidArgument: no '=', not a path, a field that does not exist (with what it may have meant),
// the status or a field of it, a value of the wrong type, a place beyond the end of a list.
// `object` is then unchanged.
absl::Status SetPath(std::string_view assignment, nlohmann::json& object);

}  // namespace ringmaster::api

#endif  // RINGMASTER_OPERATOR_API_SET_PATH_H_
