#include "runtime/optim/optimizer.h"

#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/adam.h"
#include "runtime/optim/sgd.h"

namespace ringmaster::optim {

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(
    const training::v1alpha1::Optimizer& config, size_t size) {
  if (config.sgd) return MakeSgd(*config.sgd, size);
  if (config.adam) return MakeAdam(*config.adam, size);
  return absl::InvalidArgumentError("optimizer: name one of sgd and adam");
}

double BaseLearningRate(const training::v1alpha1::Optimizer& config) {
  if (config.sgd) return config.sgd->learning_rate;
  return config.adam ? config.adam->learning_rate : 0.0;
}

}  // namespace ringmaster::optim
