#include "runtime/graph/in_place.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/device/memory.h"
#include "runtime/device/threads.h"
#include "runtime/graph/executor.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/testing/compiled_case.h"

namespace ringmaster::graph {
namespace {

using tensor::Layout;

// Kernels of this test's graphs that write in place are the vector kernels.
class InPlaceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(device::SetThreadCount(2).ok()); }
  void SetUp() override {
    if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "needs AVX2";
  }

  ValueId Input(const std::string& name) { return graph_.Input(name, {64}, DType::kF32); }
  void Output(ValueId value) { graph_.MarkOutput("y" + std::to_string(outputs_++), value); }
  // Where a value lies, as the number of the value that has the memory.
  int32_t PlaceOf(ValueId value) {
    const absl::StatusOr<Plan> plan = MakePlan(graph_, {.optimise = false});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan->roots[static_cast<size_t>(value.index)];
  }
  ::testing::AssertionResult ShareMemory(ValueId a, ValueId b) {
    if (PlaceOf(a) == PlaceOf(b)) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "they lie apart";
  }

  Graph graph_;
  // Before whatever is computed, as the plan numbers them.
  const ValueId a_ = Input("a"), b_ = Input("b"), c_ = Input("c");
  int outputs_ = 0;
};

TEST_F(InPlaceTest, AResultLiesWhereTheOperandLayThatNobodyReadsAfterwards) {
  const ValueId sum = Add(graph_, a_, b_);
  const ValueId product = Multiply(graph_, sum, c_);
  Output(Relu(graph_, Reshape(graph_, Scale(graph_, product, 2.0), {8, 8})));
  EXPECT_TRUE(ShareMemory(sum, product));
}

TEST_F(InPlaceTest, AnOperandThatIsReadLaterStays) {
  const ValueId sum = Add(graph_, a_, b_);
  const ValueId relu = Relu(graph_, sum);
  Output(Scale(graph_, Add(graph_, Scale(graph_, relu, 2.0), sum), 2.0));
  EXPECT_FALSE(ShareMemory(sum, relu));
}

TEST_F(InPlaceTest, AnOperandThatIsReadLaterUnderAnotherShapeStays) {
  const ValueId sum = Add(graph_, a_, b_);
  const ValueId relu = Relu(graph_, sum);
  Output(Scale(graph_, relu, 2.0));
  Output(Scale(graph_, Reshape(graph_, sum, {8, 8}), 2.0));
  EXPECT_FALSE(ShareMemory(sum, relu));
}

TEST_F(InPlaceTest, WhatTheCallerHasBoundStays) {
  const ValueId relu = Relu(graph_, a_);
  Output(Scale(graph_, relu, 2.0));
  EXPECT_FALSE(ShareMemory(a_, relu));
}

TEST_F(InPlaceTest, WhatAnOutputHoldsStays) {
  const ValueId sum = Add(graph_, a_, b_);
  Output(sum);
  const ValueId relu = Relu(graph_, sum);
  Output(Scale(graph_, relu, 2.0));
  EXPECT_FALSE(ShareMemory(sum, relu));
}

TEST_F(InPlaceTest, AnOperandOfAnOutputLiesInTheOutputFromItsOwnStepOn) {
  const ValueId product = Multiply(graph_, a_, b_);
  const ValueId sum = Add(graph_, product, c_);
  const ValueId relu = Relu(graph_, sum);
  Output(relu);
  EXPECT_EQ(PlaceOf(product), relu.index);
  EXPECT_EQ(PlaceOf(sum), relu.index);
}

TEST_F(InPlaceTest, OfTwoOutputsOfOneOperandTheLastTakesIt) {
  const ValueId sum = Add(graph_, a_, b_);
  const ValueId first = Relu(graph_, sum), last = Multiply(graph_, sum, sum);
  Output(first);
  Output(last);
  EXPECT_EQ(PlaceOf(sum), last.index);
  EXPECT_EQ(PlaceOf(first), first.index);
}

TEST_F(InPlaceTest, AnOperandOfAnotherShapeStays) {
  const ValueId sum = Add(graph_, a_, b_);
  const ValueId row = Reshape(graph_, sum, {1, 64});
  const ValueId wide = Relu(graph_, Concat(graph_, std::vector{row, row}, 0));
  Output(Scale(graph_, wide, 2.0));
  EXPECT_FALSE(ShareMemory(sum, wide));
}

// A layer norm may write over what it normalises, not over what it scales that with.
TEST_F(InPlaceTest, AnOperandStaysThatTheStepAlsoReadsInAnotherWay) {
  const ValueId sum = Add(graph_, a_, b_);
  const ValueId row = Reshape(graph_, sum, {1, 64});
  const ValueId by_itself = LayerNorm(graph_, row, sum, c_, 1e-5);
  Output(Scale(graph_, by_itself, 2.0));
  EXPECT_FALSE(ShareMemory(sum, by_itself));
}

// What each of a case's kernels makes in memory of its own, and in that of an operand.
class Walk {
 public:
  Walk(CompiledCase& c, Layout images)
      : plan_(MakePlan(c.graph(), {.images = images, .reuse_memory = false}).value()),
        positions_(kCaseSamples) {
    std::iota(positions_.begin(), positions_.end(), uint64_t{1000});
    for (const ValueSpec& spec : Specs()) memory_.emplace_back(spec.bytes());
    // The passes have numbered the values anew.
    std::map<std::string, ValueId> by_name;
    for (const ValueKind kind : {ValueKind::kInput, ValueKind::kParameter, ValueKind::kState}) {
      for (const ValueId id : plan_.graph.OfKind(kind))
        by_name.emplace(plan_.graph.value(id).name, id);
    }
    for (const CaseBuilder::Source& source : c.sources()) {
      const auto found = by_name.find(c.graph().value(source.id).name);
      if (found == by_name.end()) continue;
      std::memcpy(At(found->second), source.tensor.raw(), source.tensor.bytes());
    }
  }

  // Adds "relu: vector/avx2" and the like for what was written in place.
  void Check(std::set<std::string>* seen) {
    for (const PlannedStep& step : plan_.steps) {
      const Node& node = plan_.graph.node(step.node);
      Run(step, PlacesOf(node.inputs), PlacesOf(node.outputs));
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        for (size_t o = 0; o < node.outputs.size(); ++o) {
          if (!step.primitive->MayOverwrite(static_cast<int>(i), static_cast<int>(o))) continue;
          if (!(plan_.graph.spec(node.inputs[i]) == plan_.graph.spec(node.outputs[o]))) continue;
          CheckInPlace(step, i, o);
          seen->insert(std::string(node.op->type));
        }
      }
    }
  }

 private:
  std::vector<ValueSpec> Specs() const {
    std::vector<ValueSpec> specs;
    for (const Value& value : plan_.graph.values()) specs.push_back(value.spec);
    return specs;
  }
  void* At(ValueId id) {
    const int32_t root = plan_.roots[static_cast<size_t>(id.index)];
    return memory_[static_cast<size_t>(root)].data();
  }
  std::vector<void*> PlacesOf(std::span<const ValueId> values) {
    std::vector<void*> places;
    for (const ValueId value : values) places.push_back(At(value));
    return places;
  }

  void Run(const PlannedStep& step, const std::vector<void*>& inputs,
           const std::vector<void*>& outputs) const {
    const device::Buffer scratch(step.primitive->scratch_bytes());
    const std::vector<const void*> read(inputs.begin(), inputs.end());
    const RunContext context{.seed = 99, .sample_positions = positions_};
    step.primitive->Run({read.data(), outputs.data(), scratch.data(), &context});
  }

  void CheckInPlace(const PlannedStep& step, size_t input, size_t output) {
    const Node& node = plan_.graph.node(step.node);
    std::vector<device::Buffer> fresh;
    std::vector<void*> inputs = PlacesOf(node.inputs), outputs;
    for (const ValueId id : node.outputs) {
      fresh.emplace_back(plan_.graph.spec(id).bytes());
      outputs.push_back(fresh.back().data());
    }
    std::memcpy(outputs[output], inputs[input], plan_.graph.spec(node.inputs[input]).bytes());
    inputs[input] = outputs[output];
    Run(step, inputs, outputs);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      EXPECT_EQ(
          std::memcmp(outputs[o], At(node.outputs[o]), plan_.graph.spec(node.outputs[o]).bytes()),
          0)
          << node.op->type << " by " << step.primitive->name() << ": output " << o
          << " with output " << output << " in the place of input " << input;
    }
  }

  const Plan plan_;
  std::vector<device::Buffer> memory_;  // by value
  std::vector<uint64_t> positions_;
};

TEST_F(InPlaceTest, EveryKernelThatMayWriteOverAnInputMakesTheSameBitsThere) {
  std::set<std::string> seen;
  for (const Case& c : ConformanceCases()) {
    SCOPED_TRACE(c.name);
    for (const Layout images : {Layout::kRowMajor, Layout::kBlocks8, Layout::kBlocks16}) {
      CompiledCase compiled(c, DType::kF32, {.images = images});
      Walk(compiled, images).Check(&seen);
    }
  }
  EXPECT_THAT(seen, ::testing::IsSupersetOf({"add",
                                             "batch_norm",
                                             "batch_norm_add_relu_grad",
                                             "batch_norm_again",
                                             "batch_norm_grad",
                                             "batch_norm_inference_grad",
                                             "batch_norm_max_pool2d_grad",
                                             "binary_cross_entropy_grad",
                                             "conv2d_grad_input",
                                             "dropout",
                                             "exact_gelu",
                                             "exact_gelu_grad",
                                             "gelu",
                                             "gelu_grad",
                                             "layer_norm",
                                             "layer_norm_grad",
                                             "log_softmax",
                                             "log_softmax_grad",
                                             "multiply",
                                             "relu",
                                             "relu_grad",
                                             "scale",
                                             "sigmoid",
                                             "sigmoid_grad",
                                             "silu",
                                             "silu_grad",
                                             "softmax_cross_entropy",
                                             "softmax_cross_entropy_grad",
                                             "squared_error_grad",
                                             "tanh",
                                             "tanh_grad"}));
}

}  // namespace
}  // namespace ringmaster::graph
