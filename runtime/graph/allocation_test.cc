// What the executor allocates in a run. (Of a whole step: runtime/train/allocation_test.cc.)
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "common/count_allocations.h"
#include "runtime/graph/autodiff.h"
#include "runtime/graph/conformance_cases.h"
#include "runtime/graph/executor.h"

namespace ringmaster::graph {
namespace {

// The cases that are whole networks, and one whose kernels these do not have.
class AllocationTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Networks, AllocationTest,
                         ::testing::Values("SmallConvolutionNetwork", "SmallTransformer",
                                           "ConvOverTiles"));

// A training step of a case, bound and run once.
class Step {
 public:
  Step(const std::string& name, kernels::Selection selection) {
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

TEST_P(AllocationTest, OurKernelsAndTheExecutorAllocateNothingAfterTheFirstRun) {
  Step step(GetParam(), kernels::Selection::kReference);
  const int64_t before = CountAllocations();
  for (int i = 0; i < 3; ++i) {
    step.Bind();
    step.Run();
  }
  EXPECT_EQ(CountAllocations() - before, 0);
}

TEST_P(AllocationTest, OneDnnAllocatesOnlyItsArgumentTables) {
  Step step(GetParam(), kernels::Selection::kFastest);
  step.Run();
  TakeLargestAllocation();
  const int64_t before = CountAllocations();
  step.Run();
  const int64_t once = CountAllocations() - before;
  step.Run();
  EXPECT_EQ(CountAllocations() - before, 2 * once);
  EXPECT_LE(TakeLargestAllocation(), 1024u);
}

}  // namespace
}  // namespace ringmaster::graph
