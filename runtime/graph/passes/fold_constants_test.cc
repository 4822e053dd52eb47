#include <cstdint>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/testing.h"

namespace ringmaster::graph {
namespace {

TEST(FoldConstantsTest, WhatFollowsFromConstantsIsAConstant) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3}, DType::kF32);
  const ValueId two = Constant(g, 2.0, {{2, 3}, DType::kF32}, "two"),
                three = Constant(g, 3.0, {{3}, DType::kF32}, "three");
  g.MarkOutput("y", Add(g, x, Scale(g, Add(g, two, three, "five"), -0.5, "half"), "sum"));
  const Graph folded = FoldConstants(g, kernels::Selection::kFastest);
  EXPECT_THAT(ToString(folded),
              ::testing::HasSubstr("half: constant() {value=-2.5 shape=[2, 3] dtype=0} -> f32"));
  EXPECT_THAT(ToString(folded), ::testing::HasSubstr("sum: add(x, %4)"));
}

TEST(FoldConstantsTest, SeveralNumbersStayAsTheyAre) {
  Graph g;
  const ValueId one = Constant(g, 1.0, {{2, 3}, DType::kF32});
  const int64_t before[] = {0, 1}, after[] = {0, 0};
  g.MarkOutput("y", Scale(g, Pad(g, one, before, after), 2.0));
  EXPECT_EQ(OpsOf(FoldConstants(g, kernels::Selection::kFastest)).at("pad"), 1);
}

TEST(FoldConstantsTest, WhatIsRandomOrAnOutputStaysAsItIs) {
  Graph g;
  const ValueId one = Constant(g, 1.0, {{2, 3}, DType::kF32});
  g.MarkOutput("mask", Scale(g, Dropout(g, one, 0.5), 2.0));
  g.MarkOutput("two", Scale(g, one, 2.0));
  EXPECT_EQ(ToString(FoldConstants(g, kernels::Selection::kFastest)), ToString(g));
}

TEST(FoldConstantsTest, TheGradientOfASumNeedsNoSum) {
  Graph g;
  const ValueId x = g.Parameter("x", {2, 3}, DType::kF32);
  AddGradients(g, Multiply(g, x, g.Input("scale", {2, 3}, DType::kF32)));
  EXPECT_THAT(OpsOf(g),
              ::testing::UnorderedElementsAre(std::pair("constant", 2), std::pair("add", 1),
                                              std::pair("sum_to", 1), std::pair("multiply", 2)));
  // All that is left of it is a copy of "scale" into the output.
  EXPECT_THAT(OpsOf(Swept(Simplify(FoldConstants(g, kernels::Selection::kFastest)))),
              ::testing::UnorderedElementsAre(std::pair("copy", 1)));
}

}  // namespace
}  // namespace ringmaster::graph
