#include "runtime/graph/dump.h"

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/autodiff.h"
#include "runtime/graph/ops.h"

namespace ringmaster::graph {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A linear layer on flattened images, and what nobody needs.
Graph SmallGraph() {
  Graph g;
  const ValueId x = g.Input("images", {4, 2, 2}, DType::kF32);
  const ValueId w = g.Parameter("fc \"1\"", {3, 4}, DType::kF32);
  const ValueId y = Linear(g, Flatten(g, x, "flat"), w, {}, "fc");
  Reshape(g, Tanh(g, y, "unused"), {3, 4}, "unused too");
  g.MarkOutput("loss", SumAll(g, Tanh(g, y, "tanh"), "sum"));
  return g;
}

// Every end of an edge, "from -> to", that is not the name of a box, "name [label".
std::vector<std::string> LooseEnds(const std::string& dot) {
  std::set<std::string> declared;
  std::vector<std::string> ends, loose;
  std::istringstream lines(dot);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second, third;
    words >> first >> second >> third;
    if (second == "->") ends.insert(ends.end(), {first, third});
    if (second.starts_with("[label")) declared.insert(first);
  }
  EXPECT_THAT(ends, Not(IsEmpty()));
  for (const std::string& end : ends) {
    if (!declared.contains(end)) loose.push_back(end);
  }
  return loose;
}

TEST(GraphDumpTest, DrawsNodesSourcesAndOutputs) {
  const std::string dot = ToDot(SmallGraph());
  EXPECT_THAT(dot, HasSubstr(R"(n1 [label="fc\nlinear")"));
  EXPECT_THAT(dot, HasSubstr(R"(v1 [label="fc \"1\"", shape=ellipse)"));
  EXPECT_THAT(dot, HasSubstr(R"(n0 -> n1 [label="f32[4, 4]"];)"));
  EXPECT_THAT(dot, HasSubstr(R"(o0 [label="loss", shape=ellipse)"));
  EXPECT_THAT(dot, HasSubstr("unused too"));
  EXPECT_THAT(LooseEnds(dot), IsEmpty());
}

TEST(GraphDumpTest, ColoursTheBackwardPass) {
  Graph g = SmallGraph();
  const std::string before = ToDot(g);
  const auto loss = g.outputs()[0].value;
  ASSERT_TRUE(Differentiate(g, loss, g.OfKind(ValueKind::kParameter)).ok());
  const std::string after = ToDot(g);
  EXPECT_THAT(before, Not(HasSubstr("#fde3c8")));
  EXPECT_THAT(after, HasSubstr("#fde3c8"));
  EXPECT_THAT(LooseEnds(after), IsEmpty());
}

TEST(GraphDumpTest, SaysInWhichOrderAndWhereAPlanRuns) {
  const auto plan = DumpPlan(SmallGraph(), {.kernels = kernels::Selection::kReference});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->text, HasSubstr("arena: "));
  EXPECT_THAT(plan->text, HasSubstr("\n0 fc: linear by reference"));
  EXPECT_THAT(plan->text, HasSubstr("\n    %3 f32[4, 3] at 0 (48 bytes)\n"));
  EXPECT_THAT(plan->text, HasSubstr(" f32[] is output loss (4 bytes)\n"));
  EXPECT_THAT(plan->text, Not(HasSubstr("unused")));
  EXPECT_THAT(plan->dot, HasSubstr(R"(fc\nlinear\ntanh=1\nstep 0 by reference)"));
  EXPECT_THAT(plan->dot, HasSubstr(R"(flat\nreshape)"));
  EXPECT_THAT(plan->dot, Not(HasSubstr("unused")));
  EXPECT_THAT(LooseEnds(plan->dot), IsEmpty());
}

TEST(GraphDumpTest, SaysWhatLiesInTheOutputsBlock) {
  Graph g;
  const ValueId x = g.Input("x", {4, 4}, DType::kF32);
  g.MarkOutput("y", Tanh(g, MatMul(g, MatMul(g, x, x), x)));
  const auto plan = DumpPlan(g, {.kernels = kernels::Selection::kReference,
                                 .block = {.bytes = 64, .offsets = {{"y", 0}}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->text, HasSubstr("\n    %1 f32[4, 4] at 0 of the outputs' block (64 bytes)\n"));
  EXPECT_THAT(plan->text, HasSubstr("\n    %2 f32[4, 4] at 0 (64 bytes)\n"));
}

TEST(GraphDumpTest, CountsAndNamesTheStepsThatReorderImages) {
  if (kernels::FastestImageLayout() == tensor::Layout::kRowMajor) GTEST_SKIP() << "no blocks";
  Graph g;
  const ValueId x = g.Input("x", {2, 32, 16, 16}, DType::kF32),
                weight = g.Parameter("weight", {32, 32, 3, 3}, DType::kF32);
  g.MarkOutput("y", Conv2d(g, x, weight, ValueId{}, {{1, 1}, {1, 1}}, "conv"));
  const auto plan = DumpPlan(g, {.images = tensor::Layout::kBlocks8});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->text, HasSubstr("\nreorders of images: 2 of 3 steps, 131,072 bytes written\n"
                                    "    0 reorder/x: f32[2, 32, 16, 16] to f32[2, 32, 16, 16]"));
  EXPECT_THAT(plan->text, HasSubstr("\nreorders of images within other steps: none\n"));
  // The library's convolution then does it by itself, in and out.
  const auto in_rows =
      DumpPlan(g, {.kernels = kernels::Selection::kOneDnn, .images = tensor::Layout::kRowMajor});
  ASSERT_TRUE(in_rows.ok()) << in_rows.status();
  EXPECT_THAT(in_rows->text, HasSubstr("\nreorders of images: none\n"
                                       "reorders of images within other steps: 1 of 1 steps, "
                                       "131,072 bytes written\n    0 conv: 131,072 bytes\n"));
}

TEST(GraphDumpTest, ShowsWhatEachPassLeavesOfTheGraph) {
  Graph g;
  const ValueId x = g.Input("x", {4, 3}, DType::kF32);
  const ValueId weight = g.Parameter("weight", {5, 3}, DType::kF32);
  g.MarkOutput("y", Relu(g, Linear(g, Scale(g, x, 1.0, "same"), weight, ValueId{}, "fc"), "act"));
  std::vector<PassDump> dumps;
  ASSERT_TRUE(DumpPlan(g, {}, &dumps).ok());
  std::vector<std::string> passes, with_scale, with_relu;
  for (const PassDump& dump : dumps) {
    passes.push_back(dump.pass);
    if (dump.made.text.find("same: scale") != std::string::npos) with_scale.push_back(dump.pass);
    if (dump.made.text.find("act: relu") != std::string::npos) with_relu.push_back(dump.pass);
    EXPECT_THAT(LooseEnds(dump.made.dot), IsEmpty());
  }
  EXPECT_THAT(passes,
              ::testing::ElementsAre("FoldConstants", "Simplify", "MergeEqualNodes",
                                     "DelayPoolGrads", "FuseRelu", "FuseActivation",
                                     "ChooseLayouts", "FuseResidualGrad", "FuseReluGrad",
                                     "FuseConvNorm", "FuseNormMaxPool", "KeepTaps", "FuseMaxPool"));
  EXPECT_THAT(with_scale, ::testing::ElementsAre("FoldConstants"));
  EXPECT_THAT(with_relu, ::testing::ElementsAre("FoldConstants", "Simplify", "MergeEqualNodes",
                                                "DelayPoolGrads"));
}

TEST(GraphDumpTest, GivesAPlansErrors) {
  Graph broken;
  Tanh(broken, {});
  EXPECT_EQ(DumpPlan(broken, {}).status(), broken.status());
}

}  // namespace
}  // namespace ringmaster::graph
