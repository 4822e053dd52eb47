// A network's first steps in f64, by the reference kernels: what the graph computes, as good as
// without rounding. For comparisons with other frameworks, which f32 bounds: in a deep network at a
// rate that trains, rounding errors are as large as the weights' changes within a few steps.
#ifndef RINGMASTER_RUNTIME_TRAIN_BENCH_DOUBLE_STEPS_H_
#define RINGMASTER_RUNTIME_TRAIN_BENCH_DOUBLE_STEPS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/nn/model.h"
#include "runtime/tensor/tensor.h"

namespace ringmaster::train::bench {

struct DoubleSteps {
  std::vector<double> losses;             // of each step, the mean over its labels
  std::vector<tensor::Tensor> gradients;  // of the first one's, in f64, in the parameters' order
};

// Takes so many steps of SGD with momentum, each over the same batch, from these weights (of
// model.parameter_floats), which stay as they are. `model` is a training graph without anything
// random, `inputs` and `labels` are of its shapes and types. Blocks, and takes seconds for each
// 10^9 multiplications. Memory is not looked at before. Errors are graph::Executor's.
absl::StatusOr<DoubleSteps> StepInDouble(const nn::Model& model, std::span<const float> weights,
                                         const tensor::Tensor& inputs, const tensor::Tensor& labels,
                                         const training::v1alpha1::Sgd& sgd, int64_t steps);

}  // namespace ringmaster::train::bench

#endif  // RINGMASTER_RUNTIME_TRAIN_BENCH_DOUBLE_STEPS_H_
