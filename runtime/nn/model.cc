#include "runtime/nn/model.h"

#include <fmt/format.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/nn/model_builder.h"
#include "runtime/nn/sequential.h"
#include "runtime/nn/transformer.h"
#include "runtime/nn/zoo.h"

namespace ringmaster::nn {
namespace {

namespace config = training::v1alpha1;

absl::StatusOr<Model> BuildSequential(const config::Sequential& layers,
                                      const BuildOptions& options) {
  if (options.sample.dtype != tensor::DType::kF32) {
    return absl::InvalidArgumentError(
        fmt::format("a list of layers needs samples of f32 features, the data has {}; train a "
                    "transformer on text",
                    options.sample.ToString()));
  }
  ModelBuilder b(options);
  const ValueId inputs = b.Inputs();
  const ValueId logits = ApplySequential(b, layers, inputs);
  return std::move(b).Finish("sequential", inputs, logits);
}

absl::StatusOr<Model> BuildTransformer(const config::Transformer& transformer,
                                       const BuildOptions& options) {
  ModelBuilder b(options);
  const ValueId inputs = b.Inputs();
  const ValueId logits = ApplyTransformer(b, transformer, inputs);
  return std::move(b).Finish("transformer", inputs, logits);
}

absl::StatusOr<Model> Build(const config::Model& model, const BuildOptions& options) {
  if (model.zoo) {
    return BuildZoo({.name = model.zoo->name,
                     .dropout = model.zoo->dropout,
                     .width = model.zoo->width.value_or(1),
                     .layers = model.zoo->layers,
                     .norm_momentum = model.zoo->batch_norm_momentum},
                    options);
  }
  if (model.sequential) return BuildSequential(*model.sequential, options);
  if (model.transformer) return BuildTransformer(*model.transformer, options);
  return absl::InvalidArgumentError(
      "name one of zoo, sequential and transformer; a custom one belongs to a trainer of your own");
}

}  // namespace

absl::StatusOr<Model> BuildModel(const config::Model& config, const BuildOptions& options) {
  absl::StatusOr<Model> model = Build(config, options);
  if (!model.ok()) return Annotate(model.status(), "model");
  return model;
}

}  // namespace ringmaster::nn
