// ModelBuilder: a graph under construction together with the list of its parameters and states. The
// layers of layers.h are written against it, and so are networks of the user's own (train/parts.h).
// Errors stick in graph().status(), kInvalidArgument with the name and the shapes, as everywhere in
// graph/: the call that finds one gives an invalid value, and calls that are given one do nothing.
// Not thread-safe; lives while one network is built.
#ifndef RINGMASTER_RUNTIME_NN_MODEL_BUILDER_H_
#define RINGMASTER_RUNTIME_NN_MODEL_BUILDER_H_

#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/graph/ops.h"
#include "runtime/nn/model.h"

namespace ringmaster::nn {

using graph::Graph;
using graph::ValueId;

class ModelBuilder {
 public:
  explicit ModelBuilder(const BuildOptions& options) : options_(options) {}

  const BuildOptions& options() const { return options_; }
  bool training() const { return options_.mode == Mode::kTraining; }
  Graph& graph() { return graph_; }
  Shape shape(ValueId value) const { return graph_.shape(value); }

  // Declares the samples: kInputs, [batch] + the sample's shape, f32 or i32. Once.
  ValueId Inputs();

  // Declares a trained f32 tensor. Its name, "<layer>.<role>", is what groups of the manifest and
  // checkpoints know it by. An error if it is used twice, an extent is less than 1, or all
  // parameters together are more than 2^36.
  ValueId Parameter(const std::string& name, const Shape& shape, Initialiser initialiser);

  // Declares a state, f32, whose value the step's statistics move: after a step it is momentum *
  // state + (1 - momentum) * (mean over the samples). In a training graph `statistic` is the
  // shard's own one, of the same shape, and the result is invalid: nothing reads the state. In an
  // evaluation graph `statistic` is ignored, and the result is the state.
  ValueId RunningStatistic(const std::string& name, const Shape& shape, float initial,
                           double momentum, ValueId statistic);

  // Records that a layer cannot be built: "layer "NAME": MESSAGE". Gives an invalid value.
  ValueId Fail(const std::string& layer, const std::string& message);

  // Adds the loss, marks the outputs, differentiates a training graph, and gives the model away.
  absl::StatusOr<Model> Finish(std::string name, ValueId inputs, ValueId logits) &&;

 private:
  absl::Status CheckLogits(ValueId logits) const;
  graph::LossResult AddLoss(ValueId logits, ValueId labels);
  absl::Status Differentiate(ValueId loss);

  BuildOptions options_;
  Graph graph_;
  std::vector<nn::Parameter> parameters_;
  std::vector<ValueId> parameter_ids_;
  std::vector<State> states_;
  size_t parameter_floats_ = 0;
  size_t state_floats_ = 0;
};

}  // namespace ringmaster::nn

#endif  // RINGMASTER_RUNTIME_NN_MODEL_BUILDER_H_
