#include "runtime/train/bench/catalogue.h"

#include <limits>

#include "common/networks.h"
#include "common/status.h"

namespace ringmaster::train::bench {
namespace {

namespace config = training::v1alpha1;

constexpr char kMlp[] = "mlp";
constexpr double kMomentum = 0.9;

config::Layer LinearLayer(int32_t features) {
  config::Layer layer;
  layer.linear.emplace();
  layer.linear->features = features;
  return layer;
}

config::Sequential Mlp(int64_t classes) {
  config::Sequential net;
  net.layers.push_back(LinearLayer(128));
  net.layers.emplace_back().relu.emplace();
  net.layers.push_back(LinearLayer(static_cast<int32_t>(classes)));
  return net;
}

// It is what it is; the zoo's networks say themselves what of them is fixed.
absl::Status CheckMlp(const Options& options) {
  if (options.layers > 0) {
    return absl::InvalidArgumentError(
        "the layers of mlp are fixed: leave out --layers, which counts the blocks of gpt-2");
  }
  if (options.dropout >= 0)
    return absl::InvalidArgumentError("mlp has no dropout: leave out --dropout");
  return absl::OkStatus();
}

data::SampleFormat KnownFor(const std::string& model) {
  data::SampleFormat format{.input = {{3, 224, 224}, tensor::DType::kF32}, .classes = 1000};
  if (model == kMlp) format = {.input = {{64}, tensor::DType::kF32}, .classes = 10};
  if (model.starts_with("lenet"))
    format = {.input = {{1, 28, 28}, tensor::DType::kF32}, .classes = 10};
  const networks::Network* network = networks::Find(model);
  if (network != nullptr && network->reads_text())
    format = {.input = {{256}, tensor::DType::kI32}, .label_shape = {256}, .classes = 50257};
  return format;
}

}  // namespace

absl::StatusOr<Subject> MakeSubject(const Options& options) {
  Subject subject{.samples = KnownFor(options.model)};
  data::SampleFormat& samples = subject.samples;
  if (!options.input.empty()) samples.input.shape = tensor::Shape(options.input);
  // Each token has the next one for a label.
  if (samples.input.dtype == tensor::DType::kI32) samples.label_shape = samples.input.shape;
  if (options.classes > 0) samples.classes = options.classes;
  config::TrainerConfig& config = subject.config;
  if (options.model == kMlp) {
    RM_RETURN_IF_ERROR(CheckMlp(options));
    config.model.sequential = Mlp(samples.classes);
  } else {
    config.model.zoo.emplace();
    config.model.zoo->name = options.model;
    if (options.dropout >= 0) config.model.zoo->dropout = options.dropout;
    if (options.layers > 0) config.model.zoo->layers = static_cast<int32_t>(options.layers);
  }
  config.optimizer.sgd.emplace();
  config.optimizer.sgd->learning_rate = options.learning_rate;
  config.optimizer.sgd->momentum = kMomentum;
  config.batch.size = static_cast<int32_t>(options.batch);
  config.batch.shards = options.shards;
  config.steps = std::numeric_limits<int64_t>::max();
  config.threads_per_worker = options.threads;
  return subject;
}

absl::StatusOr<nn::Model> BuildSubject(const Subject& subject, int64_t batch) {
  return nn::BuildModel(subject.config.model, {.mode = nn::Mode::kTraining,
                                               .batch = batch,
                                               .sample = subject.samples.input,
                                               .label_shape = subject.samples.label_shape,
                                               .classes = subject.samples.classes});
}

}  // namespace ringmaster::train::bench
