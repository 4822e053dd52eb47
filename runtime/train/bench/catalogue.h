// What can be measured by name: every network of common/networks.h, and a small one.
#ifndef RINGMASTER_RUNTIME_TRAIN_BENCH_CATALOGUE_H_
#define RINGMASTER_RUNTIME_TRAIN_BENCH_CATALOGUE_H_

#include "absl/status/statusor.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/data/dataset.h"
#include "runtime/nn/model.h"
#include "runtime/train/bench/options.h"

namespace ringmaster::train::bench {

// A network and the samples that it is given.
struct Subject {
  training::v1alpha1::TrainerConfig config;
  data::SampleFormat samples;
};

// "mlp" is a 64-128-10 network with a ReLU; any other name is the zoo's, which refuses those that
// it does not know when the network is built. The optimizer is SGD with momentum. Samples are
// images, 3x224x224 of 1000 classes, those of a lenet 1x28x28 of 10, or 256 of 50257 tokens for
// gpt-2, where the options do not say. kInvalidArgument: the options ask something of "mlp" that it
// does not have.
absl::StatusOr<Subject> MakeSubject(const Options& options);

// The subject's training graph for so many samples. Errors are nn::BuildModel's.
absl::StatusOr<nn::Model> BuildSubject(const Subject& subject, int64_t batch);

}  // namespace ringmaster::train::bench

#endif  // RINGMASTER_RUNTIME_TRAIN_BENCH_CATALOGUE_H_
