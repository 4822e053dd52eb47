// Joins a model's executor to flat buffers. Bound memory must stay where it is while the executor
// runs; the executor's own rules (graph/executor.h) say the rest. Errors are the executor's.
#ifndef RINGMASTER_RUNTIME_NN_BINDING_H_
#define RINGMASTER_RUNTIME_NN_BINDING_H_

#include <span>

#include "absl/status/status.h"
#include "runtime/graph/executor.h"
#include "runtime/nn/model.h"

namespace ringmaster::nn {

// Parameters are read from `weights` (model.parameter_floats).
absl::Status BindParameters(const Model& model, std::span<float> weights,
                            graph::Executor& executor);

// States are read from `states` (model.state_floats). For evaluation graphs.
absl::Status BindStates(const Model& model, std::span<float> states, graph::Executor& executor);

// Gradients are written to `gradients` (model.parameter_floats); the floats between are not. For
// training graphs.
absl::Status BindGradients(const Model& model, std::span<float> gradients,
                           graph::Executor& executor);

// Gradients as one block of outputs, laid out as in `gradients` above.
graph::OutputBlock GradientBlock(const Model& model);

// The shard's statistics are written to `statistics` (model.state_floats). For training graphs.
absl::Status BindStatistics(const Model& model, std::span<float> statistics,
                            graph::Executor& executor);

}  // namespace ringmaster::nn

#endif  // RINGMASTER_RUNTIME_NN_BINDING_H_
