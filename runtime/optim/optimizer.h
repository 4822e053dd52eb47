// Optimizers: how a summed gradient changes the weights.
//
// All parameters of a model lie in one flat buffer (nn/model.h), gradients in another of
// the same layout, and an optimizer walks over both. An update is purely local: the same inputs
// give the same bits on any rank and with any number of threads. The optimizer's own memory
// (momentum, moments) is one or more flat buffers of the same layout, named, so that a checkpoint
// can hold them. What an update needs to know of time comes in as an argument; nothing is counted
// inside.
//
//   RM_ASSIGN_OR_RETURN(auto optimizer, optim::MakeOptimizer(config.optimizer, floats, ranges));
//   optimizer->Update(weights, gradient_sums,
//                     {.step = step, .learning_rate = rate, .gradient_scale = 1.0 / labels});
#ifndef RINGMASTER_RUNTIME_OPTIM_OPTIMIZER_H_
#define RINGMASTER_RUNTIME_OPTIM_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ringmaster::training::v1alpha1 {
struct Optimizer;
}  // namespace ringmaster::training::v1alpha1

namespace ringmaster::optim {

// A buffer that lasts from step to step. The view is valid while the optimizer lives.
struct StateBuffer {
  std::string name;  // "momentum", "velocity", "first_moment", "second_moment"
  std::span<float> values;
};

struct UpdateOptions {
  uint64_t step = 0;               // updates before this one: a step that was left out is none
  double learning_rate = 0;        // of this step, as the schedule has it
  double gradient_scale = 1;       // what makes the sum a mean: 1 / number of labels in the batch
  double weight_decay_factor = 1;  // of this step, as the schedule has it
  // What each value of the mean is cut to, on either side of 0. Always infinite for an optimizer of
  // a user's own, whose gradients are cut before it sees them.
  double gradient_bound = std::numeric_limits<double>::infinity();
  // The sum of the squares of the sums, where the caller has it already.
  std::optional<double> sum_of_squares;
};

// Where a trained tensor lies in the flat buffers, and its name: "conv1.weight".
struct ParameterRange {
  std::string name;
  size_t offset = 0;
  size_t size = 0;  // in floats
};

// A stretch of the flat buffer whose weights learn alike, by the configuration's groups.
struct Segment {
  size_t begin = 0, end = 0;  // of the flat buffer
  double rate_factor = 1;     // of the learning rate
  double decay_factor = 1;    // of the weight decay
  bool layer_wise = true;     // whether its own norms scale the rate, where the optimizer does so

  size_t size() const { return end - begin; }
};

// Not thread-safe; may use the process's threads (device/parallel.h) inside Update.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Changes `weights` and the state in place. Both spans have the length given to MakeOptimizer, in
  // floats, and must not overlap; `gradient_sums` is summed over the batch's labels. Never fails: a
  // gradient that is not finite makes weights that are not, so the caller looks at the loss first.
  virtual void Update(std::span<float> weights, std::span<const float> gradient_sums,
                      const UpdateOptions& options) = 0;

  // What a checkpoint must hold, in a fixed order; empty for plain gradient descent. Restoring is
  // copying into these. All zeros at the start.
  virtual std::vector<StateBuffer> state() = 0;

 protected:
  Optimizer() = default;
};

// Makes the optimizer that a configuration calls `custom`, over one segment for each parameter.
using CustomFactory =
    std::function<absl::StatusOr<std::unique_ptr<Optimizer>>(std::vector<Segment> segments)>;

// An optimizer for `size` weights, of which `parameters`, in the order of their offsets, says what
// is what; without it they are one tensor without a name. kInvalidArgument if the configuration
// makes no sense (Nesterov without momentum, no kind named), a group has no parameter, or it is
// custom and there is no `custom`; else its errors.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(
    const training::v1alpha1::Optimizer& config, size_t size,
    std::span<const ParameterRange> parameters = {}, const CustomFactory& custom = nullptr);

// Floats that the configuration's optimizer takes for `size` weights: its state. Of a custom one,
// and of a configuration that makes no sense, 0: nobody knows before it is made.
size_t FloatsFor(const training::v1alpha1::Optimizer& config, size_t size);

// The configuration's learning rate and weight decay, before the schedule.
double BaseLearningRate(const training::v1alpha1::Optimizer& config);
double BaseWeightDecay(const training::v1alpha1::Optimizer& config);

}  // namespace ringmaster::optim

#endif  // RINGMASTER_RUNTIME_OPTIM_OPTIMIZER_H_
