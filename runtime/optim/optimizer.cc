#include "runtime/optim/optimizer.h"

#include <utility>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/optim/adam.h"
#include "runtime/optim/clip.h"
#include "runtime/optim/lamb.h"
#include "runtime/optim/lars.h"
#include "runtime/optim/segments.h"
#include "runtime/optim/sgd.h"

namespace ringmaster::optim {
namespace {

absl::StatusOr<std::unique_ptr<Optimizer>> MakeKind(const training::v1alpha1::Optimizer& config,
                                                    size_t size, std::vector<Segment> segments,
                                                    const CustomFactory& custom) {
  if (config.sgd) return MakeSgd(*config.sgd, size, std::move(segments));
  if (config.adam) return MakeAdam(*config.adam, size, std::move(segments));
  if (config.adam_w) return MakeAdamW(*config.adam_w, size, std::move(segments));
  if (config.lars) return MakeLars(*config.lars, size, std::move(segments));
  if (config.lamb) return MakeLamb(*config.lamb, size, std::move(segments));
  if (config.custom && custom) return custom(std::move(segments));
  return absl::InvalidArgumentError(
      "optimizer: name one of sgd, adam, adamW, lars and lamb; a custom one belongs to a trainer "
      "of your own");
}

// The settings that every kind has, of the kind that is named. Zeros where none is.
struct Common {
  double learning_rate = 0, weight_decay = 0;
};

Common CommonOf(const training::v1alpha1::Optimizer& config) {
  Common common;
  const auto take = [&common](const auto& kind) {
    if (kind) common = {kind->learning_rate, kind->weight_decay};
  };
  take(config.sgd);
  take(config.adam);
  take(config.adam_w);
  take(config.lars);
  take(config.lamb);
  take(config.custom);
  return common;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(
    const training::v1alpha1::Optimizer& config, size_t size,
    std::span<const ParameterRange> parameters, const CustomFactory& custom) {
  const bool layer_wise = config.lars || config.lamb || config.custom;
  const Cut cut = layer_wise ? Cut::kByParameter : Cut::kWhereGroupsDiffer;
  RM_ASSIGN_OR_RETURN(auto segments, MakeSegments(config, size, parameters, cut));
  RM_ASSIGN_OR_RETURN(auto optimizer, MakeKind(config, size, std::move(segments), custom));
  if (!config.clip) return optimizer;
  return Clipped(*config.clip, size, config.custom.has_value(), std::move(optimizer));
}

size_t FloatsFor(const training::v1alpha1::Optimizer& config, size_t size) {
  training::v1alpha1::Optimizer plain = config;
  plain.groups.clear();  // they name parameters, and change no sizes
  const auto of_one_weight = MakeOptimizer(plain, 1);
  if (!of_one_weight.ok()) return 0;
  size_t floats = 0;
  for (const StateBuffer& buffer : (*of_one_weight)->state()) floats += buffer.values.size();
  return floats * size;
}

double BaseLearningRate(const training::v1alpha1::Optimizer& config) {
  return CommonOf(config).learning_rate;
}

double BaseWeightDecay(const training::v1alpha1::Optimizer& config) {
  return CommonOf(config).weight_decay;
}

}  // namespace ringmaster::optim
