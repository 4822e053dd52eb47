// Synchronised batch norm over the shards of a batch, run side by side as a trainer runs them:
// beside batch norm over the whole batch, and beside finite differences.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/graph/autodiff.h"
#include "runtime/graph/executor.h"
#include "runtime/graph/ops.h"
#include "runtime/tensor/random.h"

namespace ringmaster::graph {
namespace {

using tensor::Tensor;

constexpr int64_t kChannels = 8;
constexpr double kEpsilon = 1e-3;

// Two batch norms with a ReLU behind and a residual sum between, of `samples` samples; outputs are
// the loss, which weighs all elements, the statistics, and the gradients by x and the parameters.
struct Network {
  Graph graph;
  std::vector<std::string> outputs;

  Network(int64_t samples, DType dtype, bool synchronised) {
    Graph& g = graph;
    const Shape shape({samples, kChannels, 3, 4});
    const ValueId x = g.Parameter("x", shape, dtype), weights = g.Input("weights", shape, dtype);
    const auto norm = synchronised ? SynchronisedBatchNorm : BatchNorm;
    std::vector<ValueId> by{x};
    const auto layer = [&](const std::string& name, ValueId input) {
      for (const char* role : {".gamma", ".beta"})
        by.push_back(g.Parameter(name + role, {kChannels}, dtype));
      const BatchNormResult result = norm(g, input, by[by.size() - 2], by.back(), kEpsilon, name);
      Mark(name + ".mean", result.mean);
      Mark(name + ".variance", result.variance);
      return result.y;
    };
    const ValueId first = Relu(g, layer("first", x));
    const ValueId second = Relu(g, Add(g, layer("second", Tanh(g, first)), x));
    const ValueId loss = SumAll(g, Multiply(g, second, weights));
    Mark("loss", loss);
    const auto gradients = Differentiate(g, loss, by);
    EXPECT_TRUE(gradients.ok()) << gradients.status();
    for (size_t i = 0; i < by.size(); ++i) Mark("grad." + g.value(by[i]).name, (*gradients)[i]);
  }

  void Mark(const std::string& name, ValueId value) {
    graph.MarkOutput(name, value);
    outputs.push_back(name);
  }
};

bool IsOfSamples(const std::string& name) {
  return name == "x" || name == "weights" || name == "grad.x";
}

// All tensors of the whole batch, by name.
using Values = std::map<std::string, std::vector<double>>;

Values DrawnValues(int64_t samples) {
  Values values;
  for (const char* name :
       {"x", "weights", "first.gamma", "first.beta", "second.gamma", "second.beta"}) {
    tensor::RandomStream stream({.seed = 5, .op = tensor::StreamOf(name)});
    std::vector<double>& drawn = values[name];
    drawn.resize(static_cast<size_t>(kChannels * (IsOfSamples(name) ? samples * 12 : 1)));
    for (double& v : drawn) v = 2.0 * static_cast<double>(tensor::ToUniform(stream.Next())) - 0.8;
  }
  return values;
}

double Element(const Tensor& t, int64_t i) {
  return t.dtype() == DType::kF64 ? t.data<double>()[i] : static_cast<double>(t.data<float>()[i]);
}

// The shards of a batch, each with an executor of its own.
class Shards {
 public:
  Shards(const std::vector<int64_t>& sizes, DType dtype, const CompileOptions& options,
         bool synchronised = true)
      : sizes_(sizes) {
    for (const int64_t size : sizes) {
      const Network network(size, dtype, synchronised);
      outputs_ = network.outputs;
      auto executor = Executor::Compile(network.graph, options);
      EXPECT_TRUE(executor.ok()) << executor.status();
      executors_.push_back(*std::move(executor));
      tensors_.emplace_back();
      for (const ValueKind kind : {ValueKind::kParameter, ValueKind::kInput}) {
        for (const ValueId id : network.graph.OfKind(kind)) {
          const Value& value = network.graph.value(id);
          const Tensor& tensor =
              tensors_.back().emplace(value.name, Tensor(value.spec.shape, dtype)).first->second;
          EXPECT_TRUE(executors_.back()->Bind(value.name, tensor).ok());
        }
      }
    }
  }

  void Fill(const Values& values) {
    size_t sample = 0;
    for (size_t s = 0; s < tensors_.size(); ++s) {
      for (auto& [name, tensor] : tensors_[s]) {
        const std::vector<double>& from = values.at(name);
        const size_t begin = IsOfSamples(name) ? sample * kChannels * 12 : 0;
        for (size_t i = 0; i < static_cast<size_t>(tensor.elements()); ++i) {
          if (tensor.dtype() == DType::kF64) {
            tensor.data<double>()[i] = from[begin + i];
          } else {
            tensor.data<float>()[i] = static_cast<float>(from[begin + i]);
          }
        }
      }
      sample += static_cast<size_t>(sizes_[s]);
    }
  }

  // The names of the sums in their order.
  std::vector<std::string> Run() {
    for (const auto& executor : executors_) EXPECT_TRUE(executor->Start({}).ok());
    std::vector<std::string> names;
    while (true) {
      std::vector<ShardSum> sums;
      for (const auto& executor : executors_) {
        if (const auto sum = executor->Advance()) sums.push_back(*sum);
      }
      if (sums.empty()) return names;
      EXPECT_EQ(sums.size(), executors_.size());
      names.emplace_back(sums[0].name);
      std::vector<double> total(sums[0].own.size(), 0);
      for (const ShardSum& sum : sums) {
        EXPECT_EQ(sum.name, sums[0].name);
        for (size_t i = 0; i < total.size(); ++i) total[i] += sum.own[i];
      }
      for (const ShardSum& sum : sums) std::ranges::copy(total, sum.total.begin());
    }
  }

  // Outputs of the whole batch: of the samples side by side, sums summed, statistics the first
  // shard's, which all shards have.
  Values Results() {
    Values results;
    for (const std::string& name : outputs_) {
      std::vector<double>& all = results[name];
      for (size_t s = 0; s < executors_.size(); ++s) {
        const Tensor t = *executors_[s]->Output(name);
        for (int64_t i = 0; i < t.elements(); ++i) {
          const auto at = static_cast<size_t>(i);
          if (IsOfSamples(name) || s == 0) {
            all.push_back(Element(t, i));
          } else if (name == "loss" || name.starts_with("grad.")) {
            all[at] += Element(t, i);
          } else {
            EXPECT_EQ(all[at], Element(t, i)) << name << " of shard " << s;
          }
        }
      }
    }
    return results;
  }

  std::map<std::string, Tensor>& tensors(size_t shard) { return tensors_[shard]; }
  Executor& executor(size_t shard) { return *executors_[shard]; }

 private:
  const std::vector<int64_t> sizes_;
  std::vector<std::string> outputs_;
  std::vector<std::map<std::string, Tensor>> tensors_;  // by shard
  std::vector<std::unique_ptr<Executor>> executors_;
};

const std::vector<int64_t> kSizes = {3, 2, 1, 4};
constexpr int64_t kBatch = 10;

void ExpectLike(const Values& expected, Values got, double tolerance) {
  for (const auto& [name, values] : expected) {
    ASSERT_EQ(values.size(), got[name].size()) << name;
    // Batch norm's own variance is divided by the count, a synchronised one's by one less.
    constexpr double kCount = kBatch * 12;
    const double factor = name.ends_with(".variance") ? kCount / (kCount - 1) : 1;
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(factor * values[i], got[name][i], tolerance * (1 + std::abs(values[i])))
          << name << "[" << i << "]";
  }
}

TEST(SynchronisedBatchNormTest, OfUnequalShardsIsBatchNormOfTheWholeBatch) {
  const Values values = DrawnValues(kBatch);
  Shards whole({kBatch}, DType::kF64, {.kernels = kernels::Selection::kReference}, false);
  whole.Fill(values);
  ASSERT_TRUE(whole.executor(0).Run({}).ok());
  const Values expected = whole.Results();
  Shards exact(kSizes, DType::kF64, {.kernels = kernels::Selection::kReference});
  exact.Fill(values);
  EXPECT_THAT(exact.Run(),
              ::testing::ElementsAre("first/all_shards", "second/all_shards",
                                     "grad/second/all_shards", "grad/first/all_shards"));
  ExpectLike(expected, exact.Results(), 1e-12);
  for (const kernels::Selection selection :
       {kernels::Selection::kReference, kernels::Selection::kFastest}) {
    Shards fast(kSizes, DType::kF32, {.kernels = selection});
    fast.Fill(values);
    fast.Run();
    ExpectLike(expected, fast.Results(), 2e-5);
  }
}

TEST(SynchronisedBatchNormTest, GradientsOverShardsAgreeWithFiniteDifferences) {
  constexpr double kStep = 1e-5;
  Values values = DrawnValues(kBatch);
  Shards shards(kSizes, DType::kF64, {.kernels = kernels::Selection::kReference});
  const auto loss = [&] {
    shards.Fill(values);
    shards.Run();
    return shards.Results().at("loss")[0];
  };
  loss();
  const Values gradients = shards.Results();
  for (const std::string name : {"x", "first.gamma", "first.beta", "second.gamma", "second.beta"}) {
    const std::vector<double>& gradient = gradients.at("grad." + name);
    for (size_t i = 0; i < gradient.size(); i += gradient.size() / 8) {
      double& v = values[name][i];
      const double before = v;
      v = before + kStep;
      const double above = loss();
      v = before - kStep;
      const double expected = (above - loss()) / (2 * kStep);
      v = before;
      EXPECT_NEAR(gradient[i], expected, 1e-6 * (1 + std::abs(expected)))
          << name << "[" << i << "]";
    }
  }
}

TEST(SynchronisedBatchNormTest, AFarMeanCostsNoPrecisionThatRoundingHasLeft) {
  Values values = DrawnValues(kBatch);
  constexpr double kFar = 4096;
  for (double& v : values["x"]) v = static_cast<double>(static_cast<float>(v + kFar));
  Shards exact({kBatch}, DType::kF64, {.kernels = kernels::Selection::kReference}, false);
  exact.Fill(values);
  ASSERT_TRUE(exact.executor(0).Run({}).ok());
  Shards shards(kSizes, DType::kF32, {});
  shards.Fill(values);
  shards.Run();
  const std::vector<double> expected = exact.Results().at("first.variance"),
                            got = shards.Results().at("first.variance");
  constexpr double kCount = kBatch * 12;
  for (size_t c = 0; c < expected.size(); ++c)
    EXPECT_NEAR(got[c], expected[c] * kCount / (kCount - 1), 1e-6 * expected[c]);
}

TEST(SynchronisedBatchNormTest, AConstantSumIsNotFolded) {
  Graph g;
  const ValueId x = Constant(g, 2.0, {{4, kChannels}, DType::kF32});
  const ValueId ones = g.Parameter("ones", {kChannels}, DType::kF32);
  g.MarkOutput("mean", SynchronisedBatchNorm(g, x, ones, ones, kEpsilon).mean);
  auto executor = Executor::Compile(g, {});
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->Start({}).ok());
  const std::optional<ShardSum> sum = (*executor)->Advance();
  ASSERT_TRUE(sum);
  // As if another shard, of as many samples, had nothing but zeros.
  std::ranges::copy(sum->own, sum->total.begin());
  sum->total.back() *= 2;
  EXPECT_FALSE((*executor)->Advance());
  EXPECT_EQ((*executor)->Output("mean")->data<float>()[0], 1);
}

TEST(SynchronisedBatchNormTest, WhatIsNotFiniteIsExplainedByItsOwnShardAlone) {
  const Values values = DrawnValues(kBatch);
  Shards shards(kSizes, DType::kF32, {});
  shards.Fill(values);
  shards.Run();
  EXPECT_EQ(*shards.executor(1).FindNonFinite({}), std::nullopt);
  // Its sum with the other term is infinite, which only the second norm's shards see of each other.
  Tensor& gamma = shards.tensors(2).at("first.gamma");
  gamma.data<float>()[0] = std::numeric_limits<float>::infinity();
  shards.Run();
  const std::optional<NonFinite> found = *shards.executor(2).FindNonFinite({});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "first.gamma");
  EXPECT_EQ(*shards.executor(1).FindNonFinite({}), std::nullopt);
}

}  // namespace
}  // namespace ringmaster::graph
