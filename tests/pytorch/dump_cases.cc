// Writes what the ops and the optimizers compute, for `compare` to compute again with PyTorch:
//
//   dump_cases FOLDER
//
// FOLDER/ops/NAME.f64.safetensors (reference kernels) and NAME.f32.safetensors (the fastest) hold a
// conformance case: "source.*", "output.*" and, in the metadata, its nodes as JSON.
// FOLDER/optimizers/NAME.safetensors holds an optimizer's run: the weights at the start, the noise
// of each step's gradient, and the weights after some of the steps.
// FOLDER/training/synchronised.safetensors holds ten steps of a network with synchronised batch
// norm over four shards: "start.*" and "end.*" of each parameter and state, and for each step
// "inputs", "labels" and "losses".
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/check.h"
#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/transport/tcp/listener.h"
#include "runtime/graph/conformance_cases.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/testing/compiled_case.h"
#include "runtime/optim/optimizer.h"
#include "runtime/tensor/random.h"
#include "runtime/train/bench/tensor_file.h"
#include "runtime/train/replica.h"
#include "runtime/train/shard_runner.h"
#include "runtime/train/step_runner.h"
#include "runtime/train/testing/digits_job.h"

namespace ringmaster {
namespace {

using nlohmann::json;
using tensor::DType;
using tensor::Tensor;
using train::bench::TensorFile;

template <typename Value>
Value Must(absl::StatusOr<Value> value) {
  RM_CHECK(value.ok(), Message(value.status()).c_str());
  return *std::move(value);
}

void Must(const absl::Status& status) {
  RM_CHECK(status.ok(), Message(status).c_str());
}

json NamesOf(const graph::Graph& graph, const std::vector<graph::ValueId>& values) {
  json names = json::array();
  for (const graph::ValueId id : values)
    names.push_back(id.valid() ? json(graph.value(id).name) : json(nullptr));
  return names;
}

void DumpOp(const graph::Case& c, DType dtype, const std::filesystem::path& folder) {
  const bool exact = dtype == DType::kF64;
  graph::CompiledCase compiled(
      c, dtype, {.kernels = exact ? kernels::Selection::kReference : kernels::Selection::kFastest});
  compiled.Run();
  const graph::Graph& graph = compiled.graph();
  TensorFile file;
  for (const auto& source : compiled.sources())
    file.Add("source." + graph.value(source.id).name, source.tensor.Clone());
  for (const std::string& name : compiled.OutputNames())
    file.Add("output." + name, compiled.Output(name));
  json nodes = json::array();
  for (std::size_t i = 0; i < compiled.own_nodes(); ++i) {
    const graph::Node& node = graph.nodes()[i];
    nodes.push_back({{"op", node.op->type},
                     {"attributes", node.attributes.ToString()},
                     {"inputs", NamesOf(graph, node.inputs)},
                     {"outputs", NamesOf(graph, node.outputs)}});
  }
  Must(file.Write(folder / fmt::format("{}.{}.safetensors", c.name, exact ? "f64" : "f32"),
                  {{"nodes", nodes.dump()},
                   {"y", graph.value(compiled.y()).name},
                   {"weights", graph.value(compiled.sources().back().id).name}}));
}

// Two layers, of which one has a bias: what scales the rate by a layer's norm sees three of them.
constexpr int64_t kWeights = 96;
const std::vector<optim::ParameterRange> kParameters = {
    {"first.weight", 0, 48}, {"first.bias", 48, 16}, {"second.weight", 64, 32}};
constexpr int64_t kSteps = 1000;
constexpr int64_t kLookEvery = 50;

using Config = training::v1alpha1::Optimizer;

struct Run {
  std::string name;
  Config config;
  double rate_decay = 1;  // what the rate is multiplied by from one step to the next
};

// Biases learn faster and without decay, the second layer slower.
void SetGroups(Config& config) {
  config.groups = {{.roles = {training::v1alpha1::ParameterRole::kBias},
                    .learning_rate_factor = 2,
                    .weight_decay_factor = 0},
                   {.names = {"second.*"}, .learning_rate_factor = 0.1}};
}

std::vector<Run> Runs() {
  using training::v1alpha1::Adam;
  using training::v1alpha1::AdamW;
  using training::v1alpha1::Lamb;
  using training::v1alpha1::Lars;
  using training::v1alpha1::Sgd;
  std::vector<Run> runs;
  const auto add = [&](const std::string& name, const auto& set, double rate_decay = 1) {
    set(runs.emplace_back(Run{name, {}, rate_decay}).config);
  };
  add("sgd", [](Config& c) { c.sgd = Sgd{0.02, 0, false, 0}; });
  add("sgd-decay", [](Config& c) { c.sgd = Sgd{0.02, 0, false, 0.01}; });
  add("momentum", [](Config& c) { c.sgd = Sgd{0.01, 0.9, false, 0.001}; });
  add("nesterov", [](Config& c) { c.sgd = Sgd{0.01, 0.9, true, 0.001}; });
  add("adam", [](Config& c) { c.adam = Adam{0.01, 0.9, 0.999, 1e-8, 0.01}; });
  add("adamw", [](Config& c) { c.adam_w = AdamW{0.01, 0.9, 0.999, 1e-8, 0.01}; });
  add("lars", [](Config& c) { c.lars = Lars{0.5, 0.9, 0.0005, 0.02}; });
  add("lamb", [](Config& c) { c.lamb = Lamb{.learning_rate = 0.01, .weight_decay = 0.01}; });
  // The forms differ where the rate changes.
  constexpr double kFalling = 0.998;
  for (const bool nesterov : {false, true}) {
    const auto caffe = [nesterov](Config& c) {
      c.sgd = Sgd{0.01, 0.9, nesterov, 0.001, training::v1alpha1::SgdForm::kCaffe};
    };
    add(nesterov ? "caffe-nesterov" : "caffe", caffe, kFalling);
  }
  // At first all of the gradient is beyond the bound, and then the noise's larger part.
  add("clip-norm", [](Config& c) {
    c.sgd = Sgd{0.01, 0.9, false, 0.001};
    c.clip.emplace().global_norm = 0.5;
  });
  add("clip-value", [](Config& c) {
    c.sgd = Sgd{0.01, 0.9, false, 0.001};
    c.clip.emplace().value = 0.05;
  });
  add("groups", [](Config& c) {
    c.sgd = Sgd{0.01, 0.9, false, 0.01};
    SetGroups(c);
  });
  add("adamw-groups", [](Config& c) {
    c.adam_w = AdamW{0.01, 0.9, 0.999, 1e-8, 0.01};
    SetGroups(c);
  });
  return runs;
}

void Fill(Tensor& tensor, const char* stream_name, double scale) {
  tensor::RandomStream stream({.seed = 7, .op = tensor::StreamOf(stream_name)});
  for (float& value : tensor.span<float>())
    value = static_cast<float>(scale *
                               (2.0 * static_cast<double>(tensor::ToUniform(stream.Next())) - 1.0));
}

void DumpOptimizer(const Run& run, const std::filesystem::path& folder) {
  auto optimizer = optim::MakeOptimizer(run.config, kWeights, kParameters);
  RM_CHECK(optimizer.ok(), run.name.c_str());
  Tensor start({kWeights}, DType::kF32), noise({kSteps, kWeights}, DType::kF32),
      seen({kSteps / kLookEvery, kWeights}, DType::kF32);
  Fill(start, "start", 1);
  Fill(noise, "noise", 0.1);
  Tensor weights = start.Clone();
  std::vector<float> gradient(kWeights);
  for (int64_t step = 0; step < kSteps; ++step) {
    // The slope of half the square, and noise. The sum is over four samples.
    for (int64_t i = 0; i < kWeights; ++i)
      gradient[static_cast<std::size_t>(i)] =
          4 * (weights.data<float>()[i] + noise.data<float>()[step * kWeights + i]);
    (*optimizer)
        ->Update(weights.span<float>(), gradient,
                 {.step = static_cast<uint64_t>(step),
                  .learning_rate = optim::BaseLearningRate(run.config) *
                                   std::pow(run.rate_decay, static_cast<double>(step)),
                  .gradient_scale = 0.25});
    if ((step + 1) % kLookEvery != 0) continue;
    const auto row = seen.span<float>().subspan(
        static_cast<std::size_t>(step / kLookEvery * kWeights), kWeights);
    std::ranges::copy(weights.span<float>(), row.begin());
  }
  TensorFile file;
  file.Add("start", std::move(start));
  file.Add("noise", std::move(noise));
  file.Add("seen", std::move(seen));
  Must(file.Write(folder / (run.name + ".safetensors"),
                  {{"look_every", std::to_string(kLookEvery)},
                   {"rate_decay", fmt::format("{}", run.rate_decay)}}));
}

template <typename Entry>
void AddAll(TensorFile& file, const std::string& when, const std::vector<Entry>& entries,
            std::span<float> values) {
  for (const Entry& entry : entries)
    file.Add(when + entry.name,
             Tensor::View(values.data() + entry.offset, entry.shape, DType::kF32).Clone());
}

void DumpTraining(const std::filesystem::path& folder) {
  constexpr int kShards = 4;
  train::testing::DigitsJob job;
  training::v1alpha1::TrainerConfig& config = job.config.trainer;
  config.model.zoo->dropout = 0;
  config.model.batch_norm = training::v1alpha1::BatchNormOver::kSynchronised;
  config.batch.shards = kShards;
  config.steps = 10;
  train::Workload workload = Must(train::Workload::Load(config, job.options.workspace));
  Must(workload.CheckModel(job.options.kernels));
  train::Replica replica = Must(train::Replica::Create(workload));
  train::ShardRunner shards(workload, job.options.kernels, replica.weights());
  const auto listener = Must(collectives::tcp::Listener::Open("127.0.0.1:0"));
  collectives::CommunicatorOptions alone;
  alone.job = "compare";
  alone.round = 1;
  alone.members = {{.address = listener->address(), .pod_uid = "compare"}};
  alone.key = "nobody else takes part in it";
  const auto communicator = Must(collectives::Communicator::Create(alone, *listener));
  const train::DebugSwitches debug;
  const auto steps = Must(train::StepRunner::Create(
      {.workload = workload, .replica = replica, .shards = shards, .debug = debug}, kShards,
      *communicator));
  TensorFile file;
  const auto add_all = [&](const std::string& when) {
    AddAll(file, when, workload.layout().parameters, replica.weights());
    AddAll(file, when, workload.layout().states, replica.states());
  };
  add_all("start.");
  const int64_t count = *config.steps, batch = workload.batch();
  Tensor inputs({count, batch, 1, 8, 8}, DType::kF32), labels({count, batch}, DType::kI32),
      losses({count}, DType::kF32);
  for (int64_t step = 0; step < count; ++step) {
    Must(steps->Compute(nullptr));
    Must(steps->Reduce().status());
    Tensor images = Tensor::View(inputs.data<float>() + step * batch * 64, {batch, 1, 8, 8},
                                 DType::kF32),
           classes = Tensor::View(labels.data<int32_t>() + step * batch, {batch}, DType::kI32);
    Must(workload.train().Fill(steps->samples(), images, classes));
    losses.data<float>()[step] = static_cast<float>(steps->mean_loss());
    Must(steps->Commit(false));
  }
  file.Add("inputs", std::move(inputs));
  file.Add("labels", std::move(labels));
  file.Add("losses", std::move(losses));
  add_all("end.");
  const training::v1alpha1::Sgd& sgd = *config.optimizer.sgd;
  Must(file.Write(folder / "synchronised.safetensors",
                  {{"learning_rate", std::to_string(sgd.learning_rate)},
                   {"momentum", std::to_string(sgd.momentum)}}));
}

int Dump(const std::filesystem::path& folder) {
  for (const char* part : {"ops", "optimizers", "training"})
    std::filesystem::create_directories(folder / part);
  for (const graph::Case& c : graph::ConformanceCases()) {
    for (const DType dtype : {DType::kF64, DType::kF32}) DumpOp(c, dtype, folder / "ops");
  }
  for (const Run& run : Runs()) DumpOptimizer(run, folder / "optimizers");
  DumpTraining(folder / "training");
  return ::testing::Test::HasFailure() ? 1 : 0;
}

}  // namespace
}  // namespace ringmaster

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: dump_cases FOLDER\n");
    return 2;
  }
  return ringmaster::Dump(argv[1]);
}
