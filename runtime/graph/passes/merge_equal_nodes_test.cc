#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/testing.h"

namespace ringmaster::graph {
namespace {

TEST(MergeEqualNodesTest, WhatIsComputedTwiceIsComputedOnce) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3}, DType::kF32);
  const ValueId a = Gelu(g, Scale(g, x, 2.0), "a"), b = Gelu(g, Scale(g, x, 2.0), "b");
  g.MarkOutput("y", Add(g, a, b, "sum"));
  EXPECT_EQ(ToString(MergeEqualNodes(g)),
            "input x: f32[2, 3]\n"
            "%1 = scale_0: scale(x) {factor=2} -> f32[2, 3]\n"
            "%2 = a: gelu(%1) -> f32[2, 3]\n"
            "%3 = sum: add(%2, %2) -> f32[2, 3]\n"
            "output y = %3\n");
}

TEST(MergeEqualNodesTest, OfAnOpWithSeveralOutputsAllAreShared) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3, 4, 4}, DType::kF32);
  const ValueId gamma = g.Parameter("gamma", {3}, DType::kF32),
                beta = g.Parameter("beta", {3}, DType::kF32);
  const BatchNormResult a = BatchNorm(g, x, gamma, beta, 1e-5),
                        b = BatchNorm(g, x, gamma, beta, 1e-5);
  g.MarkOutput("y", Add(g, a.y, b.y));
  g.MarkOutput("mean", Add(g, a.mean, b.variance));
  EXPECT_THAT(OpsOf(MergeEqualNodes(g)),
              ::testing::UnorderedElementsAre(std::pair("batch_norm", 1), std::pair("add", 2)));
}

TEST(MergeEqualNodesTest, AnotherAttributeOrOrderOfInputsIsAnotherNode) {
  Graph g;
  const ValueId x = g.Input("x", {2, 2}, DType::kF32), y = g.Input("y", {2, 2}, DType::kF32);
  g.MarkOutput("scaled", Add(g, Scale(g, x, 0.0), Scale(g, x, -0.0)));
  g.MarkOutput("product", Add(g, MatMul(g, x, y), MatMul(g, y, x)));
  EXPECT_EQ(ToString(MergeEqualNodes(g)), ToString(g));
}

TEST(MergeEqualNodesTest, MasksOfTwoDropoutsStayTwo) {
  Graph g;
  const ValueId x = g.Input("x", {2, 8}, DType::kF32);
  g.MarkOutput("y", Add(g, Dropout(g, x, 0.5), Dropout(g, x, 0.5)));
  EXPECT_EQ(OpsOf(MergeEqualNodes(g)).at("dropout"), 2);
}

TEST(MergeEqualNodesTest, EachOutputKeepsANodeOfItsOwn) {
  Graph g;
  const ValueId x = g.Input("x", {2, 8}, DType::kF32);
  g.MarkOutput("a", Tanh(g, x));
  g.MarkOutput("b", Tanh(g, x));
  EXPECT_EQ(ToString(MergeEqualNodes(g)), ToString(g));
}

}  // namespace
}  // namespace ringmaster::graph
