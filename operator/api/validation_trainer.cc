// ValidateTrainer of validation.h.
#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/networks.h"
#include "operator/api/defaults.h"
#include "operator/api/validation.h"
#include "proto/ringmaster/training/v1alpha1/metric.h"
#include "proto/schema/path.h"

namespace ringmaster::api {
namespace {

using namespace training::v1alpha1;  // NOLINT: every name here is one of the API's
using Problems = std::vector<schema::Problem>;

// One of networks.h; null for any other model, and for a name that the schema has refused.
const networks::Network* NetworkOf(const Model& model) {
  return model.zoo ? networks::Find(model.zoo->name) : nullptr;
}

void CheckZooSettings(const Zoo& zoo, const networks::Network& network, Problems& problems) {
  if (zoo.dropout && !network.dropout) {
    problems.push_back({"spec.trainer.model.zoo.dropout",
                        fmt::format("{} has no dropout: leave it out", network.name)});
  }
  if (zoo.layers && network.blocks == 0) {
    problems.push_back(
        {"spec.trainer.model.zoo.layers",
         fmt::format("the number of {}'s layers is fixed: leave it out", network.name)});
  }
  if (zoo.batch_norm_momentum && !network.batch_norm) {
    problems.push_back({"spec.trainer.model.zoo.batchNormMomentum",
                        fmt::format("{} has no batch norm: leave it out", network.name)});
  }
}

// What a network of the user's own has, its program says.
void CheckBatchNorm(const Model& model, Problems& problems) {
  if (!model.batch_norm || model.custom || HasBatchNorm(model)) return;
  problems.push_back(
      {"spec.trainer.model.batchNorm", fmt::format("{} has no batch norm: leave it out",
                                                   model.zoo ? model.zoo->name : "the network")});
}

bool AreImages(const CsvData& data) {
  return data.shape.size() == 3;
}

bool AreResized(const Data& data) {
  return AreImages(*data.csv) && data.images && data.images->size.size() == 2;
}

void CheckImages(const networks::Network& network, const Data& data, Problems& problems) {
  if (!AreImages(*data.csv)) {
    problems.push_back(
        {"spec.trainer.data.csv.shape", fmt::format("{} needs images, [channels, height, width], "
                                                    "not {}",
                                                    network.name, data.csv->shape)});
    return;
  }
  const std::vector<std::int64_t> shape = SampleShape(data);
  const char* path =
      AreResized(data) ? "spec.trainer.data.images.size" : "spec.trainer.data.csv.shape";
  const std::int64_t side = std::min(shape[1], shape[2]);
  if (side >= network.smallest_side) return;
  const std::string others = networks::NamesOf([&](const networks::Network& other) {
    return !other.reads_text() && other.smallest_side <= side;
  });
  problems.push_back(
      {path,
       fmt::format("images of {} are too small for {}, whose layers need at least {} by {} "
                   "points; take larger ones, or {}",
                   shape, network.name, network.smallest_side, network.smallest_side, others)});
}

void CheckNetworkAndData(const networks::Network& network, const Data& data, Problems& problems) {
  if (network.reads_text() && data.csv) {
    problems.push_back(
        {"spec.trainer.data", fmt::format("{} reads text; give data.text", network.name)});
  }
  if (network.reads_text() && data.text && data.text->window > network.longest_window) {
    problems.push_back({"spec.trainer.data.text.window",
                        fmt::format("{} is more than the {} positions of {}; lower it",
                                    data.text->window, network.longest_window, network.name)});
  }
  if (!network.reads_text() && data.csv && !data.csv->shape.empty())
    CheckImages(network, data, problems);
}

void CheckRange(const std::string& crop, const char* of, double low, double high,
                Problems& problems) {
  if (low <= high) return;
  problems.push_back(
      {crop + ".min" + of, fmt::format("{} is more than max{} ({}); lower it", low, of, high)});
}

void CheckPerChannel(const std::string& path, size_t numbers, std::int32_t channels,
                     Problems& problems) {
  if (numbers <= 1 || numbers == static_cast<size_t>(channels)) return;
  problems.push_back({path, fmt::format("has {} numbers for {} channels; give one for each, or one "
                                        "for all",
                                        numbers, channels)});
}

void CheckChangesOfImages(const Data& data, Problems& problems) {
  if (!data.images) return;
  const std::string path = "spec.trainer.data.images";
  const Images& images = *data.images;
  if (data.text) problems.push_back({path, "text has no images; leave it out"});
  if (!images.size.empty() && images.size.size() != 2)
    problems.push_back({path + ".size", "give two numbers, the height and the width"});
  if (images.crop) {
    CheckRange(path + ".crop", "Area", images.crop->min_area, images.crop->max_area, problems);
    CheckRange(path + ".crop", "Aspect", images.crop->min_aspect, images.crop->max_aspect,
               problems);
  }
  if (!data.csv || data.csv->shape.empty()) return;
  if (!AreImages(*data.csv)) {
    problems.push_back({path, fmt::format("samples of shape {} are no images, [channels, height, "
                                          "width]; leave it out, or give data.csv.shape so",
                                          data.csv->shape)});
    return;
  }
  CheckPerChannel(path + ".mean", images.mean.size(), data.csv->shape.front(), problems);
  CheckPerChannel(path + ".deviation", images.deviation.size(), data.csv->shape.front(), problems);
}

void CheckModelAndData(const Model& model, const Data& data, Problems& problems) {
  if (model.transformer && data.csv) {
    problems.push_back({"spec.trainer.data", "the transformer reads text; give data.text"});
  }
  CheckBatchNorm(model, problems);
  const networks::Network* network = NetworkOf(model);
  if (network != nullptr) {
    CheckZooSettings(*model.zoo, *network, problems);
    CheckNetworkAndData(*network, data, problems);
  }
  const bool reads_text = model.transformer || (network != nullptr && network->reads_text());
  if (!reads_text && !model.custom && data.text) {
    problems.push_back({"spec.trainer.data",
                        "text is read by model.transformer and the zoo's gpt-2 alone; give "
                        "data.csv"});
  }
  if (model.transformer && model.transformer->width % model.transformer->heads != 0) {
    problems.push_back({"spec.trainer.model.transformer.width",
                        fmt::format("{} is not a multiple of heads ({})", model.transformer->width,
                                    model.transformer->heads)});
  }
}

// Ringmaster's own trainer has no parts but those of the schema.
void CheckCustom(const TrainerConfig& trainer, Problems& problems) {
  if (trainer.program) return;
  const auto refuse = [&](bool is_custom, const char* path) {
    if (is_custom)
      problems.push_back(
          {path, "only a trainer of your own knows it; name that in trainer.program"});
  };
  refuse(trainer.model.custom.has_value(), "spec.trainer.model.custom");
  refuse(trainer.data.custom.has_value(), "spec.trainer.data.custom");
  refuse(trainer.optimizer.custom.has_value(), "spec.trainer.optimizer.custom");
}

void CheckMilestones(const StepDecay& decay, Problems& problems) {
  for (std::size_t i = 1; i < decay.milestones.size(); ++i) {
    if (decay.milestones[i] > decay.milestones[i - 1]) continue;
    problems.push_back(
        {schema::Join("spec.trainer.schedule.stepDecay.milestones", i),
         fmt::format("{} does not come after {}", decay.milestones[i], decay.milestones[i - 1])});
  }
}

void CheckSchedule(const Schedule& schedule, Problems& problems) {
  constexpr char kPath[] = "spec.trainer.schedule";
  if (schedule.step_decay) CheckMilestones(*schedule.step_decay, problems);
  if (schedule.warmup && schedule.warmup_steps > 0) {
    problems.push_back(
        {schema::Join(kPath, "warmupSteps"), "warmup says how it warms up already; keep one"});
  }
  if (schedule.cyclic && schedule.cyclic->rise_epochs >= schedule.cyclic->epochs) {
    problems.push_back({std::string(kPath) + ".cyclic.riseEpochs",
                        fmt::format("{} leaves nothing of the cycle's {} epochs for the fall",
                                    schedule.cyclic->rise_epochs, schedule.cyclic->epochs)});
  }
  for (std::size_t i = 1; i < schedule.weight_decay.size(); ++i) {
    const double last = schedule.weight_decay[i - 1].epoch, next = schedule.weight_decay[i].epoch;
    if (next > last) continue;
    problems.push_back({schema::Join(schema::Join(kPath, "weightDecay"), i) + ".epoch",
                        fmt::format("{} does not come after {}", next, last)});
  }
}

void CheckOptimizer(const Optimizer& optimizer, Problems& problems) {
  const std::string path = "spec.trainer.optimizer";
  if (optimizer.sgd && optimizer.sgd->nesterov && optimizer.sgd->momentum == 0)
    problems.push_back({path + ".sgd.nesterov", "needs a momentum above 0"});
  const auto check_betas = [&](const auto& kind, const char* name) {
    if (kind && kind->beta1 >= 1)
      problems.push_back({fmt::format("{}.{}.beta1", path, name), "must be below 1"});
    if (kind && kind->beta2 >= 1)
      problems.push_back({fmt::format("{}.{}.beta2", path, name), "must be below 1"});
  };
  check_betas(optimizer.adam, "adam");
  check_betas(optimizer.adam_w, "adamW");
  check_betas(optimizer.lamb, "lamb");
  for (std::size_t i = 0; i < optimizer.groups.size(); ++i) {
    if (!optimizer.groups[i].names.empty() || !optimizer.groups[i].roles.empty()) continue;
    problems.push_back(
        {schema::Join(path + ".groups", i), "means no parameter; say which by names or roles"});
  }
}

// Why the data does not have this metric; empty where it does.
std::string WhyNotMeasured(Metric metric, const Data& data) {
  if (metric == Metric::kPerplexity && !data.text)
    return "Perplexity is measured on text alone; take Loss";
  if (metric == Metric::kAuroc && data.text)
    return "AUROC is measured on 2 classes or independent labels, not on text; take Accuracy or "
           "Loss";
  if (!data.csv) return "";
  if (metric == Metric::kTop5 && data.csv->labels)
    return "Top5 is measured on data with classes alone; take AUROC, Accuracy or Loss";
  const std::int32_t classes = data.csv->classes.value_or(2);  // a label holds or does not
  if (metric == Metric::kTop5 && classes < kFewestClassesForTop5) {
    return fmt::format("Top5 needs at least {} classes, the data has {}; take Accuracy or Loss",
                       kFewestClassesForTop5, classes);
  }
  if (metric == Metric::kAuroc && classes != 2) {
    return fmt::format("AUROC needs 2 classes, the data has {}; take Accuracy or Loss", classes);
  }
  return "";
}

void CheckEvaluation(const TrainerConfig& trainer, Problems& problems) {
  const Evaluation& evaluation = trainer.evaluation;
  const std::string path = "spec.trainer.evaluation";
  if (const std::string why = WhyNotMeasured(MetricOf(evaluation), trainer.data); !why.empty())
    problems.push_back({path + ".metric", why});
  if (trainer.label_smoothing > 0 && trainer.data.csv && trainer.data.csv->labels) {
    problems.push_back(
        {"spec.trainer.labelSmoothing",
         "spreads a label over classes, and data.csv.labels has none; leave it out"});
  }
  if (evaluation.metric == Metric::kPerplexity && trainer.loss == LossFunction::kMeanSquare)
    problems.push_back({path + ".metric", "Perplexity is not measured with MeanSquare; take Loss"});
  const std::string why = WhyNeverEvaluated(trainer);
  if (evaluation.early_stop && !why.empty()) problems.push_back({path + ".earlyStop", why});
}

void CheckWholeImages(const TrainerConfig& trainer, Problems& problems) {
  const auto& schedule = trainer.schedule;
  if (!schedule || !schedule->collapse || !schedule->collapse->whole_images) return;
  if (trainer.data.images && trainer.data.images->crop) return;
  problems.push_back({"spec.trainer.schedule.collapse.wholeImages",
                      "there is no data.images.crop to do without; leave it out"});
}

void CheckStartFrom(const TrainerConfig& trainer, Problems& problems) {
  if (!trainer.start_from || trainer.start_from->except.empty()) return;
  if (trainer.start_from->take == StartFromTake::kWeights) return;
  problems.push_back({"spec.trainer.startFrom.except",
                      "is for Weights; leave it out, or take Weights instead of Everything"});
}

bool EndsWithLogProbabilities(const Model& model) {
  return model.custom || (model.sequential && !model.sequential->layers.empty() &&
                          model.sequential->layers.back().log_softmax);
}

void CheckLoss(const TrainerConfig& trainer, Problems& problems) {
  const LossFunction loss = trainer.loss.value_or(LossFunction::kCrossEntropy);
  if (loss == LossFunction::kCrossEntropy) return;
  const std::string path = "spec.trainer.loss", name = ToJson(loss).get<std::string>();
  if (trainer.data.csv && trainer.data.csv->labels) {
    problems.push_back({path, name + " is of classes, and data.csv.labels has none; leave it out"});
  }
  if (trainer.label_smoothing > 0) {
    problems.push_back({"spec.trainer.labelSmoothing",
                        fmt::format("is CrossEntropy's alone, not {}'s; leave it out", name)});
  }
  if (loss == LossFunction::kNegativeLogLikelihood && !EndsWithLogProbabilities(trainer.model)) {
    problems.push_back({path, name + " takes log-probabilities, and the network ends with scores; "
                                     "take CrossEntropy, or end model.sequential with logSoftmax"});
  }
}

}  // namespace

std::string WhyNeverEvaluated(const TrainerConfig& trainer) {
  if (trainer.evaluation.every_epochs <= 0) {
    return "needs evaluations on the way; set evaluation.everyEpochs, which is 0, above 0";
  }
  if (trainer.data.csv && trainer.data.csv->hold_out_every == 0) {
    return "needs held-out samples; set data.csv.holdOutEvery, which is 0, above 0";
  }
  if (trainer.data.text && trainer.data.text->hold_out <= 0) {
    return "needs held-out samples; set data.text.holdOut, which is 0, above 0";
  }
  return "";
}

std::vector<std::int64_t> SampleShape(const Data& data) {
  std::vector<std::int64_t> shape(data.csv->shape.begin(), data.csv->shape.end());
  if (AreResized(data)) std::ranges::copy(data.images->size, shape.begin() + 1);
  return shape;
}

std::vector<schema::Problem> ValidateTrainer(const TrainerConfig& trainer) {
  Problems problems;
  CheckModelAndData(trainer.model, trainer.data, problems);
  if (trainer.model.sequential) {
    for (schema::Problem& problem : ValidateLayers(*trainer.model.sequential, trainer.data))
      problems.push_back(std::move(problem));
  }
  if (trainer.schedule) CheckSchedule(*trainer.schedule, problems);
  CheckOptimizer(trainer.optimizer, problems);
  CheckEvaluation(trainer, problems);
  CheckLoss(trainer, problems);
  CheckStartFrom(trainer, problems);
  CheckChangesOfImages(trainer.data, problems);
  CheckWholeImages(trainer, problems);
  CheckCustom(trainer, problems);
  return problems;
}

}  // namespace ringmaster::api
