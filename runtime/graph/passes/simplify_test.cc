#include <cstdint>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/ops.h"
#include "runtime/graph/passes/passes.h"
#include "runtime/graph/passes/testing.h"

namespace ringmaster::graph {
namespace {

TEST(SimplifyTest, WhatGivesItsInputBackIsLeftOut) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3}, DType::kF32);
  const int64_t zeros[] = {0, 0}, in_order[] = {0, 1};
  ValueId y = Reshape(g, x, {2, 3});
  y = Slice(g, y, zeros, {2, 3});
  y = Pad(g, y, zeros, zeros);
  y = Transpose(g, y, in_order);
  y = Concat(g, {&y, 1}, 1);
  y = g.AddOne("copy", {}, {y});
  y = Dropout(g, Scale(g, y, 1.0), 0.0);
  y = Multiply(g, y, Constant(g, 1.0, {{3}, DType::kF32}));
  y = Multiply(g, Constant(g, 1.0, {{2, 3}, DType::kF32}), y);
  g.MarkOutput("y", Relu(g, Relu(g, y, "first"), "second"));
  EXPECT_EQ(ToString(Swept(Simplify(g))),
            "input x: f32[2, 3]\n"
            "%1 = first: relu(x) -> f32[2, 3]\n"
            "output y = %1\n");
}

TEST(SimplifyTest, TwoReshapesOrTransposesBecomeOneOrNone) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3, 4}, DType::kF32);
  const int64_t turn[] = {1, 2, 0}, back[] = {2, 0, 1};
  const ValueId turned = Transpose(g, x, turn, "turned");
  g.MarkOutput("same", Scale(g, Transpose(g, turned, back), 2.0));
  g.MarkOutput("twice", Scale(g, Transpose(g, turned, turn, "twice"), 2.0));
  const ValueId flat = Flatten(g, x, "flat");
  g.MarkOutput("shaped", Scale(g, Reshape(g, flat, {2, 3, 4}), 2.0));
  g.MarkOutput("flatter", Scale(g, Reshape(g, flat, {24}, "flatter"), 2.0));
  const std::string text = ToString(Simplify(g));
  EXPECT_THAT(text, ::testing::HasSubstr("twice: transpose(x) {axes=[2, 0, 1]} -> f32[4, 2, 3]"));
  EXPECT_THAT(text, ::testing::HasSubstr("flatter: reshape(x) {shape=[24]} -> f32[24]"));
  EXPECT_EQ(OpsOf(Swept(Simplify(g))),
            (std::map<std::string, int>{{"transpose", 1}, {"reshape", 1}, {"scale", 4}}));
}

TEST(SimplifyTest, WhatChangesASignOfZeroOrARoundingStays) {
  Graph g;
  const ValueId x = g.Input("x", {2, 3}, DType::kF32);
  g.MarkOutput("sum", SumTo(g, x, {2, 3}));
  g.MarkOutput("same", Add(g, x, Constant(g, 0.0, {{3}, DType::kF32})));
  g.MarkOutput("scaled", Scale(g, Scale(g, x, 0.1), 0.1));
  EXPECT_EQ(ToString(Simplify(g)), ToString(g));
}

}  // namespace
}  // namespace ringmaster::graph
