// Parts: networks, data sets and optimizers of the user's own, by the names that manifests give
// them.
//
//   Parts parts;
//   parts.AddNetwork("tiny", [](nn::ModelBuilder& b, Settings& settings, nn::ValueId x) {
//     const int64_t width = settings.Integer("width", 32);
//     x = nn::Linear(b, "in", x, width, /*bias=*/true, nn::WeightInit::kXavier);
//     x = graph::Tanh(b.graph(), x);
//     return nn::Linear(b, "out", x, b.options().classes, true, nn::WeightInit::kXavier);
//   });
//   return TrainerMain(argc, argv, parts);  // runtime/train/trainer.h
//
// A manifest's `spec.trainer.model.custom: {name: tiny, settings: {width: 64}}` then trains it.
// Everything else is as for the parts that Ringmaster brings: how workers meet, how gradients are
// summed, checkpoints, recovery, and that the bits do not depend on the number of workers. For that
// a part must do the same on every worker: its result depends on its arguments alone, never on
// time, a random device, the process or its environment.
//
// Read every setting in every call: what nobody has asked for is refused as unknown. An exception
// that leaves one of the three functions fails the job as an error does; the methods of datasets
// and optimizers must not throw.
//
// A value; copies are independent. Adding is not thread-safe.
#ifndef RINGMASTER_RUNTIME_TRAIN_PARTS_H_
#define RINGMASTER_RUNTIME_TRAIN_PARTS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/settings.h"
#include "runtime/data/dataset.h"
#include "runtime/nn/model_builder.h"
#include "runtime/optim/optimizer.h"

namespace ringmaster::train {

// Adds a network to the builder's graph, from `inputs` ([batch] + the shape of a sample; f32, or
// i32 for tokens) to the logits it returns: f32, [batch] + the shape of a label + [classes]. Write
// it with nn/layers.h and graph/ops.h; b.options() says what the data are like. The loss that
// the job names is added behind it, and the gradients: with NegativeLogLikelihood the network must
// end with log-probabilities, else with scores.
//
// It is called for every size of shard and in both modes, and must declare the same parameters and
// running statistics in the same order each time; what training alone does, dropout say, asks
// b.training(). Mistakes stick in b.graph().status() (graph/graph.h), and fail the job with code
// 67.
using NetworkFunction =
    std::function<nn::ValueId(nn::ModelBuilder& b, Settings& settings, nn::ValueId inputs)>;

// Makes the samples, on every worker alike. Relative paths start from `workspace`. Blocks as long
// as it likes: it runs before the worker is ready.
//
// Splits::train has at least one sample. held_out, of the same format, may be left null: nothing is
// evaluated then. Where `fingerprint` is left empty, all samples are read once, their labels are
// checked to lie in [0, classes), and it is a hash of them; with a large set set it yourself, to
// what tells this data from any other. A label that is no class then shows in the first step that
// has it, whose loss is no number, or in the first evaluation. Any error fails the job with code
// 66; kInternal and kResourceExhausted, which another try may help, restart the worker.
using DatasetFunction =
    std::function<absl::StatusOr<data::Splits>(Settings& settings, const std::string& workspace)>;

// What an optimizer is made for.
struct OptimizerSetup {
  size_t size = 0;          // floats of weights, and of gradients
  double weight_decay = 0;  // of the manifest; times UpdateOptions::weight_decay_factor in a step
  // The network's tensors, in the order of their offsets, and for each of them how the manifest's
  // groups want it treated: segments[i] is where parameters[i] lies. Floats outside of them belong
  // to nobody, and stay 0.
  std::vector<optim::ParameterRange> parameters;
  std::vector<optim::Segment> segments;
};

// Makes an optimizer for a flat buffer of setup.size weights. The learning rate, with the schedule
// applied, comes with each update. Its state buffers have setup.size floats each; they are part of
// checkpoints under their names. An error fails the job with code 65.
using OptimizerFunction = std::function<absl::StatusOr<std::unique_ptr<optim::Optimizer>>(
    Settings& settings, const OptimizerSetup& setup)>;

class Parts {
 public:
  // Names are anything but empty, and new among parts of their kind: the first mistake is kept in
  // status(), and TrainerMain ends with it.
  void AddNetwork(const std::string& name, NetworkFunction build);
  void AddDataset(const std::string& name, DatasetFunction load);
  void AddOptimizer(const std::string& name, OptimizerFunction make);

  const absl::Status& status() const { return status_; }

  const std::map<std::string, NetworkFunction>& networks() const { return networks_; }
  const std::map<std::string, DatasetFunction>& datasets() const { return datasets_; }
  const std::map<std::string, OptimizerFunction>& optimizers() const { return optimizers_; }

 private:
  std::map<std::string, NetworkFunction> networks_;
  std::map<std::string, DatasetFunction> datasets_;
  std::map<std::string, OptimizerFunction> optimizers_;
  absl::Status status_;
};

}  // namespace ringmaster::train

#endif  // RINGMASTER_RUNTIME_TRAIN_PARTS_H_
