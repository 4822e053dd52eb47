#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/testing.h"

namespace ringmaster::graph {
namespace {

using ::testing::HasSubstr;

class FuseActivationTest : public ::testing::Test {
 protected:
  // A linear layer of four samples.
  ValueId Layer() {
    const ValueId x = g_.Input("x", {4, 3}, DType::kF32);
    return Linear(g_, x, g_.Parameter("weight", {5, 3}, DType::kF32),
                  g_.Parameter("bias", {5}, DType::kF32), "fc");
  }

  Graph g_;
};

TEST_F(FuseActivationTest, ALinearLayerKeepsTheResultThatAnActivationsGradientReads) {
  const ValueId y = Gelu(g_, Layer(), "act");
  AddGradients(g_, Multiply(g_, y, y));  // whose gradient reads y
  const Graph after = FuseActivation(g_);
  EXPECT_THAT(ToString(g_), HasSubstr("fc: linear(x, weight, bias) -> f32[4, 5]\n"));
  EXPECT_EQ(OpsOf(g_).at("gelu_grad"), 1);
  EXPECT_THAT(ToString(after), HasSubstr("%3, %4 = fc: linear_activation(x, weight, bias) {gelu=1} "
                                         "-> f32[4, 5], f32[4, 5]\n"));
  EXPECT_THAT(ToString(after), HasSubstr("gelu_grad(%4, "));
  EXPECT_EQ(OpsOf(after).count("linear") + OpsOf(after).count("gelu"), 0u);
}

TEST_F(FuseActivationTest, ALinearLayerMakesTheActivationAloneWhoseGradientReadsThatOnly) {
  const ValueId y = Tanh(g_, Layer(), "act");
  AddGradients(g_, Multiply(g_, y, y));
  const Graph after = FuseActivation(g_);
  EXPECT_THAT(ToString(after),
              HasSubstr("%3 = fc: linear(x, weight, bias) {tanh=1} -> f32[4, 5]\n"));
  EXPECT_THAT(ToString(after), HasSubstr("tanh_grad(%3, "));
  EXPECT_EQ(OpsOf(after).count("tanh"), 0u);
}

struct Kind {
  const char* op;
  ValueId (*add)(Graph& g, ValueId x, std::string_view name);
};

class EveryActivationTest : public FuseActivationTest,
                            public ::testing::WithParamInterface<Kind> {};

INSTANTIATE_TEST_SUITE_P(Activations, EveryActivationTest,
                         ::testing::Values(Kind{"exact_gelu", ExactGelu}, Kind{"gelu", Gelu},
                                           Kind{"sigmoid", Sigmoid}, Kind{"silu", Silu},
                                           Kind{"tanh", Tanh}),
                         [](const auto& info) { return std::string(info.param.op); });

TEST_P(EveryActivationTest, IsTheLinearLayersOwnWhereNothingElseReadsTheResult) {
  g_.MarkOutput("y", Scale(g_, GetParam().add(g_, Layer(), "act"), 2.0));
  const Graph after = FuseActivation(g_);
  EXPECT_THAT(ToString(after), HasSubstr(std::string("fc: linear(x, weight, bias) {") +
                                         GetParam().op + "=1} -> f32[4, 5]\n"));
  EXPECT_EQ(OpsOf(after).count(GetParam().op), 0u);
}

TEST_F(FuseActivationTest, AnOutputOfTheGraphStaysOneAndHasItsActivationBesides) {
  const ValueId x = Layer();
  g_.MarkOutput("x", x);
  g_.MarkOutput("y", Sigmoid(g_, x, "act"));
  const Graph after = FuseActivation(g_);
  EXPECT_EQ(OpsOf(after).at("linear_activation"), 1);
  EXPECT_EQ(OpsOf(after).count("linear") + OpsOf(after).count("sigmoid"), 0u);
  ASSERT_EQ(after.outputs().size(), 2u);
  EXPECT_NE(after.outputs()[0].value.index, after.outputs()[1].value.index);
}

TEST_F(FuseActivationTest, OfTwoActivationsOfOneResultTheFirstIsTheLayers) {
  const ValueId x = Layer(), one = Tanh(g_, x, "one"), two = Silu(g_, x, "two");
  g_.MarkOutput("y", Add(g_, one, two));
  const Graph after = FuseActivation(g_);
  EXPECT_THAT(ToString(after), HasSubstr("linear_activation(x, weight, bias) {tanh=1}"));
  EXPECT_EQ(OpsOf(after).at("silu"), 1);
}

TEST_F(FuseActivationTest, AReluWithOtherReadersOfItsInputStaysAsItIs) {
  const ValueId x = Layer();
  g_.MarkOutput("y", Add(g_, Relu(g_, x, "act"), x));
  EXPECT_EQ(ToString(FuseActivation(g_)), ToString(g_));
}

}  // namespace
}  // namespace ringmaster::graph
