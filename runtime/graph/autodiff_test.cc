#include "runtime/graph/autodiff.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/graph/executor.h"
#include "runtime/graph/op_definition.h"
#include "runtime/graph/ops.h"

namespace ringmaster::graph {
namespace {

using tensor::Tensor;

TEST(AutodiffTest, GradientsOfAValueUsedTwiceAreAdded) {
  Graph g;
  const ValueId x = g.Parameter("x", {3}, DType::kF32);
  const ValueId loss = SumAll(g, Add(g, Scale(g, x, 2.0), Scale(g, x, 5.0)));
  const auto gradients = Differentiate(g, loss, std::vector{x});
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  g.MarkOutput("dx", (*gradients)[0]);
  auto executor = Executor::Compile(g, {});
  ASSERT_TRUE(executor.ok()) << executor.status();
  ASSERT_TRUE((*executor)->Run({}).ok());  // the gradient of a linear function does not read x
  for (const float v : (*executor)->Output("dx")->span<float>()) EXPECT_EQ(v, 7.0f);
}

TEST(AutodiffTest, AValueThatTheLossDoesNotReadGetsZeros) {
  Graph g;
  const ValueId x = g.Parameter("x", {3}, DType::kF32);
  const ValueId unused = g.Parameter("unused", {2}, DType::kF32);
  const auto gradients = Differentiate(g, SumAll(g, x), std::vector{unused});
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  g.MarkOutput("d", (*gradients)[0]);
  auto executor = Executor::Compile(g, {});
  ASSERT_TRUE(executor.ok() && (*executor)->Run({}).ok());
  for (const float v : (*executor)->Output("d")->span<float>()) EXPECT_EQ(v, 0.0f);
}

TEST(AutodiffTest, GradientsThatNobodyWantsAreNotBuilt) {
  Graph g;
  const ValueId x = g.Input("x", {2, 1, 4, 4}, DType::kF32);
  const ValueId w = g.Parameter("w", {3, 1, 3, 3}, DType::kF32);
  const ValueId loss = SumAll(g, Conv2d(g, x, w, ValueId{}));
  ASSERT_TRUE(Differentiate(g, loss, std::vector{w}).ok());
  for (const Node& node : g.nodes())
    EXPECT_EQ(node.name.find("grad/conv2d_0/x"), std::string::npos);
}

TEST(AutodiffTest, TwoParametersMayShareOneGradient) {
  Graph g;
  const ValueId a = g.Parameter("a", {2}, DType::kF32), b = g.Parameter("b", {2}, DType::kF32);
  const auto gradients = Differentiate(g, SumAll(g, Add(g, a, b)), std::vector{a, b});
  ASSERT_TRUE(gradients.ok());
  g.MarkOutput("da", (*gradients)[0]);
  g.MarkOutput("db", (*gradients)[1]);
  auto executor = Executor::Compile(g, {});
  ASSERT_TRUE(executor.ok()) << executor.status();
  Tensor da({2}, DType::kF32), db({2}, DType::kF32);
  ASSERT_TRUE((*executor)->BindOutput("da", da).ok() && (*executor)->BindOutput("db", db).ok());
  ASSERT_TRUE((*executor)->Run({}).ok());
  EXPECT_EQ(da.data<float>()[1], 1.0f);
  EXPECT_EQ(db.data<float>()[1], 1.0f);
}

TEST(AutodiffTest, ALossThatIsNoScalarIsRefused) {
  Graph g;
  const ValueId x = g.Parameter("x", {3}, DType::kF32);
  const auto gradients = Differentiate(g, Relu(g, x), std::vector{x});
  EXPECT_EQ(Message(gradients.status()), "the loss must be a real scalar, got f32[3]");
}

TEST(AutodiffTest, AnOpWithoutAGradientIsNamed) {
  Graph g;
  const ValueId x = g.Parameter("x", {3}, DType::kF32);
  const ValueId odd = g.AddOne("relu_grad", {}, {x, x}, "odd");
  const auto gradients = Differentiate(g, SumAll(g, odd), std::vector{x});
  EXPECT_EQ(gradients.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Message(gradients.status()), "odd (relu_grad) has no gradient");
}

TEST(AutodiffTest, AnEarlierErrorOfTheGraphIsHandedOn) {
  Graph g;
  const ValueId x = g.Parameter("x", {3}, DType::kF32);
  const ValueId bad = Reshape(g, x, {4}, "bad");
  EXPECT_EQ(Differentiate(g, SumAll(g, bad), std::vector{x}).status(), g.status());
}

}  // namespace
}  // namespace ringmaster::graph
