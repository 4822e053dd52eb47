// ValidateTrainer of validation.h: what can be said of a network without computing its shapes.
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "operator/api/validation.h"
#include "proto/schema/path.h"

namespace ringmaster::api {
namespace {

using namespace training::v1alpha1;  // NOLINT: every name here is one of the API's
using Problems = std::vector<schema::Problem>;

constexpr char kLayersPath[] = "spec.trainer.model.sequential.layers";

std::string_view KindOf(const Layer& layer) {
  if (layer.conv2d) return "conv2d";
  if (layer.max_pool) return "maxPool";
  if (layer.average_pool) return "averagePool";
  if (layer.linear) return "linear";
  if (layer.batch_norm) return "batchNorm";
  if (layer.dropout) return "dropout";
  if (layer.flatten) return "flatten";
  return "activation";
}

bool NeedsImages(const Layer& layer) {
  return layer.conv2d || layer.max_pool || layer.average_pool;
}

void CheckPool(const std::optional<Pool>& pool, const std::string& path, Problems& problems) {
  if (!pool || pool->padding * 2 <= pool->kernel) return;
  problems.push_back(
      {path + ".padding",
       fmt::format("{} is more than half the kernel ({}): a window could lie outside the image",
                   pool->padding, pool->kernel)});
}

void CheckNames(const Sequential& model, Problems& problems) {
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (!model.layers[i].name) continue;
    const auto [first, added] = places.emplace(*model.layers[i].name, i);
    if (added) continue;
    problems.push_back(
        {schema::Join(kLayersPath, i) + ".name",
         fmt::format("layers[{}] has the name {} already", first->second, first->first)});
  }
}

void CheckLayers(const Sequential& model, Problems& problems) {
  std::string flattened_by;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    const std::string path = schema::Join(kLayersPath, i);
    CheckPool(layer.max_pool, path + ".maxPool", problems);
    CheckPool(layer.average_pool, path + ".averagePool", problems);
    if (NeedsImages(layer) && !flattened_by.empty()) {
      problems.push_back({path, fmt::format("{} needs images, but {} before it leaves none",
                                            KindOf(layer), flattened_by)});
    }
    if (layer.linear || layer.flatten)
      flattened_by = fmt::format("layers[{}] ({})", i, KindOf(layer));
  }
}

void CheckHead(const Sequential& model, const Data& data, Problems& problems) {
  const std::size_t last = model.layers.size() - 1;
  const std::optional<Linear>& head = model.layers[last].linear;
  if (!head || !data.csv || head->features == data.csv->classes) return;
  problems.push_back({schema::Join(kLayersPath, last) + ".linear.features",
                      fmt::format("{} scores for {} classes (data.csv.classes); make them equal",
                                  head->features, data.csv->classes)});
}

void CheckModelAndData(const Model& model, const Data& data, Problems& problems) {
  if (model.transformer && !data.text) {
    problems.push_back({"spec.trainer.data", "the transformer reads characters; give data.text"});
  }
  if (!model.transformer && data.text) {
    problems.push_back(
        {"spec.trainer.data", "text is read by model.transformer alone; give data.csv"});
  }
  if (model.transformer && model.transformer->width % model.transformer->heads != 0) {
    problems.push_back({"spec.trainer.model.transformer.width",
                        fmt::format("{} is not a multiple of heads ({})", model.transformer->width,
                                    model.transformer->heads)});
  }
}

void CheckMilestones(const StepDecay& decay, Problems& problems) {
  for (std::size_t i = 1; i < decay.milestones.size(); ++i) {
    if (decay.milestones[i] > decay.milestones[i - 1]) continue;
    problems.push_back(
        {schema::Join("spec.trainer.schedule.stepDecay.milestones", i),
         fmt::format("{} does not come after {}", decay.milestones[i], decay.milestones[i - 1])});
  }
}

}  // namespace

std::vector<schema::Problem> ValidateTrainer(const TrainerConfig& trainer) {
  Problems problems;
  CheckModelAndData(trainer.model, trainer.data, problems);
  if (trainer.model.sequential) {
    CheckNames(*trainer.model.sequential, problems);
    CheckLayers(*trainer.model.sequential, problems);
    CheckHead(*trainer.model.sequential, trainer.data, problems);
  }
  if (trainer.schedule && trainer.schedule->step_decay)
    CheckMilestones(*trainer.schedule->step_decay, problems);
  const auto& sgd = trainer.optimizer.sgd;
  if (sgd && sgd->nesterov && sgd->momentum == 0) {
    problems.push_back({"spec.trainer.optimizer.sgd.nesterov", "needs a momentum above 0"});
  }
  return problems;
}

}  // namespace ringmaster::api
