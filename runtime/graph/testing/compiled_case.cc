#include "runtime/graph/testing/compiled_case.h"

#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/device/threads.h"
#include "runtime/graph/autodiff.h"
#include "runtime/graph/op_definition.h"

namespace ringmaster::graph {
namespace {

constexpr uint64_t kRunSeed = 99;

}  // namespace

CompiledCase::CompiledCase(const Case& c, DType dtype, const CompileOptions& options, int threads)
    : builder_(dtype), graph_(builder_.graph()) {
  EXPECT_TRUE(device::SetThreadCount(threads).ok());
  Graph& g = builder_.graph();
  y_ = c.build(builder_);
  own_nodes_ = g.nodes().size();
  EXPECT_TRUE(g.status().ok()) << g.status();
  const int64_t n = g.shape(y_).elements();
  const ValueId weights = builder_.Fixed({1, n});
  const ValueId loss = Reshape(g, Linear(g, Reshape(g, y_, {1, n}), weights, ValueId{}), {});
  std::vector<ValueId> wrt;
  for (const auto& source : builder_.sources()) {
    if (source.differentiate) wrt.push_back(source.id);
  }
  const auto gradients = Differentiate(g, loss, wrt);
  EXPECT_TRUE(gradients.ok()) << gradients.status();
  g.MarkOutput("y", y_);
  g.MarkOutput("loss", loss);
  for (size_t i = 0; i < wrt.size(); ++i) g.MarkOutput(GradientName(wrt[i]), (*gradients)[i]);
  for (size_t i = 0; i < own_nodes_; ++i) {
    const Node& node = g.nodes()[i];
    if (node.op->type == "dropout") g.MarkOutput(fmt::format("dropout.{}", i), node.outputs[0]);
  }
  auto executor = Executor::Compile(g, options);
  EXPECT_TRUE(executor.ok()) << executor.status();
  executor_ = std::move(*executor);
  for (auto& source : builder_.sources())
    EXPECT_TRUE(executor_->Bind(g.value(source.id).name, source.tensor).ok());
  positions_.resize(kCaseSamples);
  std::iota(positions_.begin(), positions_.end(), uint64_t{1000});
}

void CompiledCase::Run() {
  const absl::Status status = executor_->Run({.seed = kRunSeed, .sample_positions = positions_});
  ASSERT_TRUE(status.ok()) << status;
}

double CompiledCase::Loss() {
  Run();
  return At(*executor_->Output("loss"), 0);
}

std::vector<std::string> CompiledCase::OutputNames() const {
  std::vector<std::string> names;
  for (const NamedValue& output : graph_.outputs()) names.push_back(output.name);
  return names;
}

double CompiledCase::At(const tensor::Tensor& t, int64_t i) {
  return t.dtype() == DType::kF64 ? t.data<double>()[i] : static_cast<double>(t.data<float>()[i]);
}

}  // namespace ringmaster::graph
