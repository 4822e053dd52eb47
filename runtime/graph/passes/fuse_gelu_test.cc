#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/testing.h"

namespace ringmaster::graph {
namespace {

TEST(FuseGeluTest, ALinearLayerTakesTheGeluWhoseGradientReadsItsResult) {
  Graph g;
  const ValueId x = g.Input("x", {4, 3}, DType::kF32);
  const ValueId weight = g.Parameter("weight", {5, 3}, DType::kF32),
                bias = g.Parameter("bias", {5}, DType::kF32);
  const ValueId y = Gelu(g, Linear(g, x, weight, bias, "fc"), "act");
  AddGradients(g, Multiply(g, y, y));  // whose gradient reads y
  const Graph after = FuseGelu(g);
  EXPECT_THAT(ToString(g), ::testing::HasSubstr("fc: linear(x, weight, bias) -> f32[4, 5]\n"));
  EXPECT_EQ(OpsOf(g).at("gelu_grad"), 1);
  EXPECT_THAT(ToString(after), ::testing::HasSubstr("%3, %4 = fc: linear_gelu(x, weight, bias) -> "
                                                    "f32[4, 5], f32[4, 5]\n"));
  EXPECT_THAT(ToString(after), ::testing::HasSubstr("gelu_grad(%4, "));
  EXPECT_EQ(OpsOf(after).count("linear") + OpsOf(after).count("gelu"), 0u);
}

TEST(FuseGeluTest, WithoutAGradientGeluKeepsItsNodeAndTakesTheResultsPlace) {
  Graph g;
  const ValueId x = g.Input("x", {4, 3}, DType::kF32);
  const ValueId weight = g.Parameter("weight", {5, 3}, DType::kF32);
  const ValueId y = Gelu(g, Linear(g, x, weight, ValueId{}, "fc"), "act");
  g.MarkOutput("y", Scale(g, y, 2.0));
  EXPECT_EQ(ToString(FuseGelu(g)), ToString(g));
}

}  // namespace
}  // namespace ringmaster::graph
