// ValidateLayers of validation.h. Shapes are those of one sample, without the batch; they are
// computed as runtime/graph does it.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "operator/api/validation.h"
#include "proto/schema/path.h"

namespace ringmaster::api {
namespace {

using namespace training::v1alpha1;  // NOLINT: every name here is one of the API's
using Problems = std::vector<schema::Problem>;
using Extents = std::vector<std::int64_t>;

constexpr char kLayersPath[] = "spec.trainer.model.sequential.layers";
constexpr std::size_t kImageAxes = 3;  // [channels, height, width]

std::string_view KindOf(const Layer& layer) {
  if (layer.conv2d) return "conv2d";
  if (layer.max_pool) return "maxPool";
  if (layer.average_pool) return "averagePool";
  if (layer.adaptive_average_pool) return "adaptiveAveragePool";
  if (layer.adaptive_max_pool) return "adaptiveMaxPool";
  if (layer.linear) return "linear";
  if (layer.batch_norm) return "batchNorm";
  if (layer.dropout) return "dropout";
  if (layer.flatten) return "flatten";
  if (layer.log_softmax) return "logSoftmax";
  return "activation";
}

bool NeedsImages(const Layer& layer) {
  return layer.conv2d || layer.max_pool || layer.average_pool || layer.adaptive_average_pool ||
         layer.adaptive_max_pool;
}

void CheckPool(const std::optional<Pool>& pool, const std::string& path, Problems& problems) {
  if (!pool || pool->padding <= pool->kernel / 2) return;
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

void CheckOrder(const Sequential& model, Problems& problems) {
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

// The scores that a network must end with for these data, and what there are so many of.
std::int32_t ScoresFor(const CsvData& data) {
  return data.labels.value_or(data.classes.value_or(0));
}

std::string WhatHasScores(const CsvData& data) {
  return data.labels ? fmt::format("{} labels (data.csv.labels)", *data.labels)
                     : fmt::format("{} classes (data.csv.classes)", ScoresFor(data));
}

void CheckHead(const Sequential& model, const Data& data, Problems& problems) {
  if (model.layers.empty()) return;
  const std::size_t last = model.layers.size() - 1;
  const std::optional<Linear>& head = model.layers[last].linear;
  if (!head || !data.csv || head->features == ScoresFor(*data.csv)) return;
  problems.push_back(
      {schema::Join(kLayersPath, last) + ".linear.features",
       fmt::format("{} scores for {}; make them equal", head->features, WhatHasScores(*data.csv))});
}

// "[1, 8, 8]"
std::string Text(const Extents& shape) {
  return fmt::format("{}", shape);
}

// What is wrong with a layer: the field, from the layer's kind on, and the message. Nothing where
// both are empty.
struct Misfit {
  std::string field;
  std::string message;
};

// A square window that slides over an image.
struct Sliding {
  std::string_view what;  // "kernel" or "window", for messages
  std::int64_t side, stride, padding, dilation;
};

// Puts the result's height and width into `shape`.
Misfit Slide(const Sliding& window, Extents& shape) {
  Extents result = shape;
  for (std::size_t axis : {1U, 2U}) {
    const std::int64_t room = shape[axis] + 2 * window.padding - 1;
    if (window.side - 1 > room / window.dilation) {
      const std::string apart =
          window.dilation > 1 ? fmt::format(", every {} points,", window.dilation) : "";
      return {".kernel", fmt::format("a {} of {} by {}{} does not fit into {} with a padding of "
                                     "{}; make it smaller, or shrink the image less before it",
                                     window.what, window.side, window.side, apart, Text(shape),
                                     window.padding)};
    }
    result[axis] = (room - (window.side - 1) * window.dilation) / window.stride + 1;
  }
  shape = result;
  return {};
}

Misfit Convolve(const Conv2d& conv, Extents& shape) {
  if (shape[0] % conv.groups != 0 || conv.channels % conv.groups != 0) {
    return {".groups", fmt::format("{} does not divide both the {} channels that reach it and its "
                                   "own {}",
                                   conv.groups, shape[0], conv.channels)};
  }
  Misfit misfit = Slide({"kernel", conv.kernel, conv.stride, conv.padding, conv.dilation}, shape);
  shape[0] = conv.channels;
  return misfit;
}

Misfit ApplyPool(const Pool& pool, Extents& shape) {
  const std::int64_t stride = std::max(1, pool.stride.value_or(pool.kernel));
  return Slide({"window", pool.kernel, stride, pool.padding, 1}, shape);
}

Misfit ApplyToImage(const Layer& layer, Extents& shape) {
  if (shape.size() != kImageAxes)
    return {"",
            fmt::format("needs images, [channels, height, width], but {} reaches it", Text(shape))};
  if (layer.conv2d) return Convolve(*layer.conv2d, shape);
  if (layer.max_pool) return ApplyPool(*layer.max_pool, shape);
  if (layer.average_pool) return ApplyPool(*layer.average_pool, shape);
  const AdaptivePool& pool =
      layer.adaptive_max_pool ? *layer.adaptive_max_pool : *layer.adaptive_average_pool;
  shape[1] = shape[2] = pool.size;
  return {};
}

// Changes `shape` from what reaches the layer to what leaves it.
Misfit Apply(const Layer& layer, Extents& shape) {
  if (NeedsImages(layer)) return ApplyToImage(layer, shape);
  if (layer.batch_norm && shape.size() != 1 && shape.size() != kImageAxes)
    return {"", fmt::format("needs images or a row of features, but {} reaches it", Text(shape))};
  if (layer.flatten) {
    // Past this the runtime says what no memory holds. By division, as the product may overflow.
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    std::int64_t product = 1;
    for (const std::int64_t extent : shape)
      product = extent > kMost / product ? kMost : product * extent;
    shape = {product};
  }
  if ((layer.linear || layer.log_softmax) && shape.size() != 1)
    return {"", fmt::format("needs a row of features, but {} reaches it; put a flatten before it",
                            Text(shape))};
  if (layer.linear) shape = {layer.linear->features};
  return {};
}

// The first layer that does not fit; what comes after it would be a guess.
void CheckShapes(const Sequential& model, const Data& all, Problems& problems) {
  const CsvData& data = *all.csv;
  Extents shape = SampleShape(all);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Misfit misfit = Apply(model.layers[i], shape);
    if (misfit.message.empty()) continue;
    problems.push_back({fmt::format("{}.{}{}", schema::Join(kLayersPath, i),
                                    KindOf(model.layers[i]), misfit.field),
                        misfit.message});
    return;
  }
  if (shape == Extents{ScoresFor(data)}) return;
  problems.push_back(
      {kLayersPath, fmt::format("the network ends with {}, but {} need as many scores; end with a "
                                "linear layer of {} features",
                                Text(shape), WhatHasScores(data), ScoresFor(data))});
}

}  // namespace

std::vector<schema::Problem> ValidateLayers(const Sequential& model, const Data& data) {
  Problems problems;
  CheckNames(model, problems);
  CheckOrder(model, problems);
  CheckHead(model, data, problems);
  if (problems.empty() && data.csv) CheckShapes(model, data, problems);
  return problems;
}

}  // namespace ringmaster::api
