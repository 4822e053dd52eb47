// What the executor and the kernels allocate in a run. (Of a whole step:
// runtime/train/allocation_test.cc.)
#include <algorithm>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/count_allocations.h"
#include "runtime/device/memory.h"
#include "runtime/device/threads.h"
#include "runtime/device/vectors.h"
#include "runtime/graph/autodiff.h"
#include "runtime/graph/conformance_cases.h"
#include "runtime/graph/executor.h"
#include "runtime/graph/plan.h"
#include "runtime/graph/testing/compiled_case.h"
#include "runtime/kernels/vector/split_product.h"

namespace ringmaster::graph {
namespace {

// Of whose regions OpenMP's memory is part.
constexpr int kThreads = 2;

// The cases that are whole networks, and one whose kernels these do not have.
class AllocationTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Networks, AllocationTest,
                         ::testing::Values("SmallConvolutionNetwork", "SmallTransformer",
                                           "ConvOverTiles"));

// A training step of a case, bound and run once.
class Step {
 public:
  Step(const std::string& name, kernels::Selection selection) {
    EXPECT_TRUE(device::SetThreadCount(kThreads).ok());
    Graph& g = builder_.graph();
    const ValueId result =
        std::ranges::find(ConformanceCases(), name, &Case::name)->build(builder_);
    const ValueId loss = SumAll(g, result);
    const auto gradients = Differentiate(g, loss, g.OfKind(ValueKind::kParameter));
    EXPECT_TRUE(gradients.ok()) << gradients.status();
    g.MarkOutput("loss", loss);
    for (size_t i = 0; i < gradients->size(); ++i)
      g.MarkOutput("d" + std::to_string(i), (*gradients)[i]);
    executor_ = std::move(*Executor::Compile(g, {.kernels = selection}));
    Bind();
    Run();
  }

  void Bind() {
    for (auto& source : builder_.sources()) {
      EXPECT_TRUE(executor_->Bind(builder_.graph().value(source.id).name, source.tensor).ok());
    }
  }
  void Run() { EXPECT_TRUE(executor_->Run({.seed = 1, .sample_positions = positions_}).ok()); }

 private:
  CaseBuilder builder_{DType::kF32};
  std::unique_ptr<Executor> executor_;
  std::vector<uint64_t> positions_ = std::vector<uint64_t>(kCaseSamples);
};

TEST_P(AllocationTest, ReferenceKernelsAndTheExecutorAllocateNothingAfterTheFirstRun) {
  Step step(GetParam(), kernels::Selection::kReference);
  const int64_t before = CountAllocations();
  for (int i = 0; i < 3; ++i) {
    step.Bind();
    step.Run();
  }
  EXPECT_EQ(CountAllocations() - before, 0);
}

// A step's kernel by itself, on zeros, in memory of its own.
class LoneKernel {
 public:
  LoneKernel(const Graph& graph, const PlannedStep& step)
      : primitive_(*step.primitive), scratch_(primitive_.scratch_bytes()) {
    const Node& node = graph.node(step.node);
    for (const ValueId input : node.inputs) inputs_.push_back(Zeros(graph.spec(input)));
    for (const ValueId output : node.outputs) outputs_.push_back(Zeros(graph.spec(output)));
  }

  void Run() { primitive_.Run({inputs_.data(), outputs_.data(), scratch_.data(), &context_}); }

 private:
  void* Zeros(const ValueSpec& spec) { return memory_.emplace_back(spec.bytes()).data(); }

  kernels::Primitive& primitive_;
  const device::Buffer scratch_;
  std::deque<device::Buffer> memory_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  const std::vector<uint64_t> positions_ = std::vector<uint64_t>(kCaseSamples);
  const RunContext context_{.seed = 1, .sample_positions = positions_};
};

// Those of every case, forward and backward, as the passes have joined them.
TEST(KernelAllocationTest, TheFastestKernelsAllocateNothingAfterTheirSecondRun) {
  std::set<std::string> ran;
  for (const Case& one : ConformanceCases()) {
    const CompiledCase compiled(one, DType::kF32, {}, kThreads);
    const Plan plan = MakePlan(compiled.graph(), {}).value();
    for (const PlannedStep& step : plan.steps) {
      const std::string name = step.primitive->name();
      const bool is_onednn = name.find("onednn") != std::string::npos;
      // The library reorders for kernels of ours, too.
      const bool runs_onednn = is_onednn || step.primitive->reordered_bytes() > 0;
      if (runs_onednn && !kCountsMalloc) continue;
      LoneKernel kernel(plan.graph, step);
      kernel.Run();
      kernel.Run();
      const int64_t before = CountAllocations();
      kernel.Run();
      EXPECT_EQ(CountAllocations() - before, 0)
          << one.name << ", " << plan.graph.node(step.node).name << " by " << name;
      ran.insert(is_onednn ? "onednn" : name);
    }
  }
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "the vector kernels need AVX2";
  EXPECT_THAT(ran, ::testing::IsSupersetOf({"reference", "vector/avx2", "vector/winograd"}));
  EXPECT_EQ(ran.contains("onednn"), kCountsMalloc);
  EXPECT_EQ(ran.contains("vector/direct"), device::MayUse(device::Vectors::kAvx512));
  EXPECT_EQ(ran.contains("vector/amx"), kernels::vector::SplitProduct::Runs());
}

// It makes a table of its arguments in each call, and copies of what its parallel loops run.
TEST_P(AllocationTest, OneDnnsTablesLieInMemoryThatIsKept) {
  if (!kCountsMalloc) GTEST_SKIP() << "a sanitizer has an operator new of its own";
  Step step(GetParam(), kernels::Selection::kFastest);
  step.Run();
  const int64_t before = CountAllocations();
  for (int i = 0; i < 3; ++i) {
    step.Bind();
    step.Run();
  }
  EXPECT_EQ(CountAllocations() - before, 0);
}

}  // namespace
}  // namespace ringmaster::graph
