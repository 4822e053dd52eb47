// Model: a network from a job's configuration, as a graph for one shard of the batch.
//
// BuildModel turns the configuration's layers into a static graph (graph/graph.h) with a loss on
// top. A training graph also holds the
// backward pass; an evaluation graph leaves dropout out and normalises by running statistics.
// Whatever the shard's size and the mode, a configuration gives the same parameters and states in
// the same order, so that one flat buffer of weights serves every graph of a job. All of a graph's
// outputs but the logits are sums over its samples; whoever adds up shards divides once, at the
// end.
//
//   RM_ASSIGN_OR_RETURN(nn::Model model, nn::BuildModel(config.model,
//       {.mode = nn::Mode::kTraining, .batch = 16, .sample = format.input,
//        .label_shape = format.label_shape, .classes = format.classes}));
//   device::Buffer / std::vector<float> of model.parameter_floats: the weights; see initialise.h,
//   binding.h
//
// A Model is a value; reading it from several threads is safe.
#ifndef RINGMASTER_RUNTIME_NN_MODEL_H_
#define RINGMASTER_RUNTIME_NN_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/graph.h"
#include "runtime/tensor/shape.h"

namespace ringmaster::training::v1alpha1 {
struct Model;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::nn {

using tensor::Shape;

// Names of the graph's inputs and outputs.
inline constexpr char kInputs[] = "inputs";     // input, [batch] + sample shape
inline constexpr char kLabels[] = "labels";     // input, i32 [batch] + label shape
inline constexpr char kLossSum[] = "loss_sum";  // output, f32 scalar: summed over the labels
inline constexpr char kCorrect[] =
    "correct";  // output, f32 scalar: labels whose logit is the largest
inline constexpr char kLogits[] =
    "logits";  // output of an evaluation graph, [batch] + label shape + [classes], or [batch] +
               // label shape for independent labels

enum class Mode { kTraining, kEvaluation };

// Of classes. graph::SoftmaxCrossEntropy, MeanSquare and Nll say what they are.
enum class Loss { kCrossEntropy, kMeanSquare, kNegativeLogLikelihood };

// How a parameter begins. A uniform draw lies in [-bound, bound), a normal one around 0.
struct Initialiser {
  enum class Kind { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  double value = 0;  // the constant, the bound, or the standard deviation

  static Initialiser Constant(double value) { return {Kind::kConstant, value}; }
  static Initialiser Uniform(double bound) { return {Kind::kUniform, bound}; }
  static Initialiser Normal(double deviation) { return {Kind::kNormal, deviation}; }
  bool operator==(const Initialiser&) const = default;
};

// A trained tensor. Its values are floats [offset, offset + shape.elements()) of the flat buffer of
// weights, and its gradient the same range of the flat buffer of gradients.
struct Parameter {
  std::string name;  // "<layer>.<role>", as in "conv1.weight"; also its name in the graph
  Shape shape;
  Initialiser initialiser;
  size_t offset = 0;
  std::string gradient;  // the training graph's output with d(loss sum)/d(parameter)

  bool operator==(const Parameter&) const = default;
};

// A tensor that lasts but is not trained: a batch norm's running mean or variance. After a step it
// becomes momentum * state + (1 - momentum) * (mean over the samples of the shards' statistics);
// see running_statistics.h. Ranges as in Parameter, in flat buffers of states.
struct State {
  std::string name;  // "bn1.running_mean"; also its name in the evaluation graph
  Shape shape;
  float initial = 0;
  size_t offset = 0;
  std::string statistic;  // the training graph's output with the shard's own statistic
  double momentum = 0;

  bool operator==(const State&) const = default;
};

struct Model {
  std::string name;  // "resnet-50", "sequential", "transformer"
  graph::Graph graph;
  tensor::ValueSpec inputs;  // of kInputs and kLabels
  tensor::ValueSpec labels;
  std::vector<Parameter> parameters;
  std::vector<State> states;
  // Floats in a flat buffer. Offsets are multiples of a cache line, so this is more than the
  // parameters' elements; the floats between stay as they were.
  size_t parameter_floats = 0;
  size_t state_floats = 0;

  // Trained numbers, for people.
  int64_t ParameterCount() const;
};

struct BuildOptions {
  Mode mode = Mode::kTraining;
  int64_t batch = 1;         // samples in the shard
  tensor::ValueSpec sample;  // of one sample: f32 features, or i32 tokens for a transformer
  Shape label_shape;         // of one sample's labels
  int64_t classes = 0;       // for a transformer also the number of tokens
  // Whether the labels hold or not, each for itself: one score for each of them, and binary
  // cross-entropy. `classes` is then their number.
  bool independent_labels = false;
  Loss loss = Loss::kCrossEntropy;  // not looked at for independent labels
  double label_smoothing = 0;       // of a training graph's cross-entropy
  bool gradients = true;            // whether a training graph gets its backward pass
  // Whether batch norm in a training graph normalises over the whole batch of a step instead of the
  // shard: its run then waits for the other shards (graph::SynchronisedBatchNorm).
  bool synchronised_batch_norm = false;
  // Of a network of the zoo: the share of a batch norm's old running statistics that a step keeps.
  double norm_momentum = 0.9;
};

// Which batch norm it gets is the options' word, not `config.batch_norm`'s.
//   kInvalidArgument  layers that do not fit each other or the data, an unknown network, a name
//                     used twice, too many parameters; the message begins with "model: " and
//                     names the layer and the shapes
//   kUnimplemented    an op without a gradient
absl::StatusOr<Model> BuildModel(const training::v1alpha1::Model& config,
                                 const BuildOptions& options);

}  // namespace ringmaster::nn

#endif  // RINGMASTER_RUNTIME_NN_MODEL_H_
