#include "runtime/graph/executor.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/device/memory.h"
#include "runtime/graph/autodiff.h"
#include "runtime/graph/ops.h"

namespace ringmaster::graph {
namespace {

using tensor::Tensor;

std::unique_ptr<Executor> MustCompile(const Graph& g, const CompileOptions& options = {}) {
  auto executor = Executor::Compile(g, options);
  EXPECT_TRUE(executor.ok()) << executor.status();
  return executor.ok() ? std::move(*executor) : nullptr;
}

Tensor Counting(const Shape& shape) {
  Tensor t(shape, DType::kF32);
  std::iota(t.span<float>().begin(), t.span<float>().end(), -3.0f);
  return t;
}

TEST(ExecutorTest, RunsABoundGraph) {
  Graph g;
  g.MarkOutput("y", Relu(g, g.Input("x", {6}, DType::kF32)));
  const auto executor = MustCompile(g);
  const Tensor x = Counting({6});
  ASSERT_TRUE(executor->Bind("x", x).ok());
  ASSERT_TRUE(executor->Run({}).ok());
  EXPECT_THAT(executor->Output("y")->span<float>(), ::testing::ElementsAre(0, 0, 0, 0, 1, 2));
}

TEST(ExecutorTest, RebindingPointsTheNextRunAtOtherMemory) {
  Graph g;
  g.MarkOutput("y", Scale(g, g.Input("x", {1}, DType::kF32), 2.0));
  const auto executor = MustCompile(g);
  Tensor a({1}, DType::kF32), b({1}, DType::kF32), out({1}, DType::kF32);
  a.data<float>()[0] = 1, b.data<float>()[0] = 10;
  ASSERT_TRUE(executor->Bind("x", a).ok() && executor->Run({}).ok());
  EXPECT_EQ(executor->Output("y")->data<float>()[0], 2);
  ASSERT_TRUE(executor->Bind("x", b).ok() && executor->BindOutput("y", out).ok() &&
              executor->Run({}).ok());
  EXPECT_EQ(out.data<float>()[0], 20);
  EXPECT_EQ(executor->Output("y")->raw(), out.raw());
}

// Sums of products, so that one run's values would be wrong for another.
Graph Products(int64_t rows) {
  Graph g;
  const ValueId x = g.Input("x", {rows, 32}, DType::kF32);
  g.MarkOutput("y", MatMul(g, Tanh(g, MatMul(g, x, x, false, true)), Tanh(g, x)));
  return g;
}

TEST(ExecutorTest, OneArenaServesExecutorsThatTakeTurns) {
  const auto arena = std::make_shared<device::Buffer>();
  const std::vector<int64_t> sizes = {12, 50, 13};
  std::vector<std::unique_ptr<Executor>> sharing;
  std::vector<Tensor> inputs, expected;
  size_t largest = 0;
  for (const int64_t rows : sizes) {
    inputs.push_back(Counting({rows, 32}));
    const auto own = MustCompile(Products(rows));
    ASSERT_TRUE(own->Bind("x", inputs.back()).ok() && own->Run({}).ok());
    const Tensor y = own->Output("y").value();
    expected.emplace_back(y.shape(), y.dtype());
    std::ranges::copy(y.span<float>(), expected.back().span<float>().begin());
    largest = std::max(largest, own->arena_bytes());
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    sharing.push_back(MustCompile(Products(sizes[i]), {.arena = arena}));
    ASSERT_TRUE(sharing.back()->Bind("x", inputs[i]).ok());
    for (size_t j = 0; j <= i; ++j) {  // the arena may have moved
      ASSERT_TRUE(sharing[j]->Run({}).ok());
      EXPECT_TRUE(std::ranges::equal(std::as_const(expected[j]).span<float>(),
                                     sharing[j]->Output("y")->span<float>()))
          << sizes[j] << " after " << sizes[i];
    }
  }
  EXPECT_EQ(arena->bytes(), largest);
}

TEST(ExecutorTest, SaysWhenAnOutputIsComplete) {
  Graph g;
  const ValueId first = Scale(g, g.Input("x", {1}, DType::kF32), 2.0);
  g.MarkOutput("first", first);
  g.MarkOutput("second", Scale(g, first, 5.0));
  const auto executor = MustCompile(g);
  Tensor x({1}, DType::kF32), one({1}, DType::kF32), two({1}, DType::kF32);
  x.data<float>()[0] = 1;
  ASSERT_TRUE(executor->Bind("x", x).ok() && executor->BindOutput("first", one).ok() &&
              executor->BindOutput("second", two).ok());
  std::vector<std::pair<float, float>> seen;
  const auto look = [&] { seen.emplace_back(one.data<float>()[0], two.data<float>()[0]); };
  ASSERT_TRUE(executor->OnComplete("first", look).ok());
  ASSERT_TRUE(executor->OnComplete("second", look).ok());
  EXPECT_EQ(executor->OnComplete("third", look).code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(executor->Run({}).ok());
  EXPECT_THAT(seen, ::testing::ElementsAre(::testing::Pair(2, 0), ::testing::Pair(2, 10)));
}

TEST(ExecutorTest, WhatIsNotBoundIsNamed) {
  Graph g;
  g.MarkOutput("y", Relu(g, g.Input("images", {2, 3}, DType::kF32)));
  const absl::Status status = MustCompile(g)->Run({});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(status), "\"images\" (f32[2, 3]) is not bound");
}

TEST(ExecutorTest, BindingTheWrongThingIsRefusedWithBothNamed) {
  Graph g;
  g.MarkOutput("y", Relu(g, g.Input("x", {2, 3}, DType::kF32)));
  const auto executor = MustCompile(g);
  EXPECT_EQ(Message(executor->Bind("x", Tensor({3, 2}, DType::kF32))),
            "input, parameter or state \"x\" is f32[2, 3], cannot bind f32[3, 2]");
  EXPECT_EQ(executor->Bind("x", Tensor()).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(executor->Bind("z", Tensor({1}, DType::kF32)).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(executor->Output("z").status().code(), absl::StatusCode::kNotFound);
}

TEST(ExecutorTest, WhatNoOutputNeedsIsNeitherRunNorAskedFor) {
  Graph g;
  const ValueId x = g.Input("x", {4}, DType::kF32);
  Relu(g, g.Input("unused", {4}, DType::kF32), "dead");
  g.MarkOutput("y", Relu(g, x, "live"));
  const auto executor = MustCompile(g);
  const Tensor data = Counting({4});
  ASSERT_TRUE(executor->Bind("x", data).ok());
  EXPECT_TRUE(executor->Bind("unused", data).ok());
  EXPECT_TRUE(executor->Run({}).ok());
  ASSERT_EQ(executor->ImplementationNames().size(), 1u);
  EXPECT_EQ(executor->ImplementationNames()[0].rfind("live: ", 0), 0u);
}

TEST(ExecutorTest, AGraphWithoutOutputsOrWithAnErrorDoesNotCompile) {
  Graph empty;
  EXPECT_EQ(Message(Executor::Compile(empty, {}).status()),
            "the graph has no outputs: nothing to run");
  Graph bad;
  Reshape(bad, bad.Input("x", {2}, DType::kF32), {3});
  EXPECT_EQ(Executor::Compile(bad, {}).status(), bad.status());
}

TEST(ExecutorTest, AGraphThatNoMemoryHoldsSaysHowMuchItTakes) {
  Graph g;
  const ValueId x = g.Input("x", {int64_t{1} << 40}, DType::kF64);
  ValueId h = x;
  for (int i = 0; i < 64; ++i) h = Add(g, Scale(g, h, 2.0), x);
  g.MarkOutput("y", h);
  const auto executor = Executor::Compile(g, {.reuse_memory = false});
  EXPECT_EQ(executor.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(executor.status()), ::testing::HasSubstr("needs 1117103813820416 bytes"));
}

// A chain in which each value dies at once needs two buffers, however long it is, even of kernels
// that write nothing in place.
TEST(ExecutorTest, ALongChainReusesTwoBuffersAndStaysRight) {
  constexpr int kLength = 20;
  Graph g;
  ValueId h = g.Input("x", {1024}, DType::kF32);
  for (int i = 0; i < kLength; ++i) h = Scale(g, h, i % 2 == 0 ? 2.0 : 0.5);
  g.MarkOutput("y", h);
  const auto executor = MustCompile(g, {.kernels = kernels::Selection::kReference});
  EXPECT_EQ(executor->arena_bytes(), 2 * 1024 * sizeof(float));
  EXPECT_EQ(executor->arena_bytes_without_reuse(), (kLength - 1) * 1024 * sizeof(float));
  const Tensor x = Counting({1024});
  ASSERT_TRUE(executor->Bind("x", x).ok() && executor->Run({}).ok());
  EXPECT_TRUE(std::ranges::equal(executor->Output("y")->span<float>(), x.span<float>()));
}

TEST(ExecutorTest, NamesTheOpThatMakesTheFirstNumberThatIsNotFinite) {
  Graph g;
  const ValueId x = g.Input("x", {3}, DType::kF32);
  const ValueId large = Scale(g, x, 1e30, "large");
  const ValueId square = Multiply(g, large, large, "square");
  g.MarkOutput("y", Scale(g, square, 0.0, "nothing"));
  const auto executor = MustCompile(g);
  Tensor data({3}, DType::kF32);
  ASSERT_TRUE(executor->Bind("x", data).ok());
  EXPECT_EQ(*executor->FindNonFinite({}), std::nullopt) << "zeros stay zeros";
  data.data<float>()[1] = 1;
  const std::optional<NonFinite> found = *executor->FindNonFinite({});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "square");
  EXPECT_EQ(found->op, "multiply");
  EXPECT_EQ(found->spec.ToString(), "f32[3]");
}

TEST(ExecutorTest, NamesWhatWasBoundWhereThatIsNotFinite) {
  Graph g;
  g.MarkOutput("y", Relu(g, g.Input("x", {2}, DType::kF32)));
  const auto executor = MustCompile(g);
  Tensor data({2}, DType::kF32);
  data.data<float>()[1] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(executor->Bind("x", data).ok());
  const std::optional<NonFinite> found = *executor->FindNonFinite({});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, "x");
  EXPECT_EQ(found->op, "");
}

TEST(ExecutorTest, LooksForNothingBeforeAllIsBound) {
  Graph g;
  g.MarkOutput("y", Relu(g, g.Input("x", {2}, DType::kF32)));
  EXPECT_EQ(MustCompile(g)->FindNonFinite({}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(ExecutorTest, AnOutputThatIsReboundTakesWhatIsOverwrittenInItAlong) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "needs kernels that write in place";
  Graph g;
  const ValueId x = g.Input("x", {4}, DType::kF32);
  g.MarkOutput("y", Relu(g, Multiply(g, x, g.Input("by", {4}, DType::kF32))));
  const auto executor = MustCompile(g);
  EXPECT_EQ(executor->arena_bytes(), 0U) << "the product lies in the output";
  const Tensor values = Counting({4}), by = Counting({4});
  Tensor first({4}, DType::kF32), second({4}, DType::kF32);
  std::vector<float> at_call;
  ASSERT_TRUE(executor->Bind("x", values).ok() && executor->Bind("by", by).ok());
  ASSERT_TRUE(executor->BindOutput("y", first).ok() && executor->Run({}).ok());
  first.data<float>()[3] = 7;
  ASSERT_TRUE(executor->BindOutput("y", second).ok());
  ASSERT_TRUE(executor
                  ->OnComplete("y",
                               [&] {
                                 const auto now = second.span<float>();
                                 at_call.insert(at_call.end(), now.begin(), now.end());
                               })
                  .ok());
  ASSERT_TRUE(executor->Run({}).ok());
  EXPECT_THAT(at_call, ::testing::ElementsAre(9, 4, 1, 0)) << "once, when it is complete";
  EXPECT_THAT(first.span<float>(), ::testing::ElementsAre(9, 4, 1, 7));
}

// (x x) x, where x x lies in the memory of the first output until that is written.
Graph GraphOfTwoOutputs() {
  Graph g;
  const ValueId x = g.Input("x", {4, 4}, DType::kF32);
  g.MarkOutput("last", MatMul(g, MatMul(g, x, x), x));
  g.MarkOutput("first", Scale(g, x, 3.0));
  return g;
}

TEST(ExecutorTest, OutputsLieInTheBlockThatIsBound) {
  const Graph g = GraphOfTwoOutputs();
  const auto executor =
      MustCompile(g, {.kernels = kernels::Selection::kReference,
                      .block = {.bytes = 192, .offsets = {{"first", 0}, {"last", 128}}}});
  EXPECT_EQ(executor->arena_bytes(), 0U) << "the first product lies in the block";
  const Tensor x = Counting({4, 4});
  device::Buffer block(192);
  const auto at = [&](size_t i) { return static_cast<const float*>(block.data()) + i; };
  ASSERT_TRUE(executor->Bind("x", x).ok());
  ASSERT_TRUE(executor->BindBlock({static_cast<std::byte*>(block.data()), block.bytes()}).ok());
  ASSERT_TRUE(executor->Run({}).ok());
  EXPECT_EQ(executor->Output("first")->raw(), at(0));
  EXPECT_EQ(executor->Output("last")->raw(), at(32));
  const auto apart = MustCompile(g, {.kernels = kernels::Selection::kReference});
  ASSERT_TRUE(apart->Bind("x", x).ok() && apart->Run({}).ok());
  for (const char* output : {"first", "last"}) {
    const Tensor got = *executor->Output(output), wanted = *apart->Output(output);
    EXPECT_THAT(got.span<float>(), ::testing::ElementsAreArray(wanted.span<float>())) << output;
  }
}

TEST(ExecutorTest, ABlockThatIsNotBoundIsTheExecutors) {
  const auto executor = MustCompile(
      GraphOfTwoOutputs(), {.block = {.bytes = 192, .offsets = {{"first", 0}, {"last", 128}}}});
  const Tensor x = Counting({4, 4});
  ASSERT_TRUE(executor->Bind("x", x).ok() && executor->Run({}).ok());
  EXPECT_EQ(executor->Output("first")->span<float>()[4], 3);
}

TEST(ExecutorTest, ABlocksOutputsAreNotBoundElsewhereNorToAnotherSize) {
  const auto executor =
      MustCompile(GraphOfTwoOutputs(), {.block = {.bytes = 64, .offsets = {{"first", 0}}}});
  Tensor y({4, 4}, DType::kF32);
  EXPECT_EQ(Message(executor->BindOutput("first", y)),
            "output \"first\" lies in the block of outputs, which is bound as a whole");
  EXPECT_TRUE(executor->BindOutput("last", y).ok());
  std::vector<std::byte> bytes(128);
  EXPECT_EQ(Message(executor->BindBlock(bytes)),
            "the block of outputs has 64 bytes, cannot bind 128");
}

TEST(ExecutorTest, ABlockWithoutRoomForItsOutputsIsRefused) {
  const Graph g = GraphOfTwoOutputs();
  const auto error = [&](const OutputBlock& block) {
    return Message(Executor::Compile(g, {.block = block}).status());
  };
  const auto misfit = [](const char* name) {
    return fmt::format("the block of outputs: \"{}\" is no output, or does not fit into it", name);
  };
  EXPECT_EQ(error({.bytes = 64, .offsets = {{"second", 0}}}), misfit("second"));
  EXPECT_EQ(error({.bytes = 64, .offsets = {{"first", 64}}}), misfit("first"));
  EXPECT_EQ(error({.bytes = 128, .offsets = {{"first", 32}}}), misfit("first"));
  EXPECT_EQ(error({.bytes = 128, .offsets = {{"first", 64}, {"last", 64}}}), misfit("last"));
}

TEST(ExecutorTest, AValueReadLateKeepsItsMemoryThroughAnAlias) {
  Graph g;
  const ValueId x = g.Input("x", {8}, DType::kF32);
  const ValueId early = Scale(g, x, 3.0);
  const ValueId alias = Reshape(g, early, {2, 4});
  ValueId h = x;
  for (int i = 0; i < 4; ++i) h = Scale(g, h, 1.0);
  g.MarkOutput("y", Add(g, Reshape(g, h, {2, 4}), alias));
  const auto executor = MustCompile(g);
  const Tensor data = Counting({8});
  ASSERT_TRUE(executor->Bind("x", data).ok() && executor->Run({}).ok());
  const Tensor y = *executor->Output("y");
  for (int i = 0; i < 8; ++i) EXPECT_EQ(y.data<float>()[i], 4 * data.data<float>()[i]);
}

// Dropout over `samples` samples of 16 ones, starting at a position in the stream.
std::vector<float> Mask(uint64_t seed, uint64_t first, int64_t samples) {
  Graph g;
  g.MarkOutput("y", Dropout(g, g.Input("x", {samples, 16}, DType::kF32), 0.5));
  const auto executor = MustCompile(g);
  Tensor x({samples, 16}, DType::kF32);
  std::ranges::fill(x.span<float>(), 1.0f);
  std::vector<uint64_t> positions(static_cast<size_t>(samples));
  std::iota(positions.begin(), positions.end(), first);
  EXPECT_TRUE(executor->Bind("x", x).ok());
  EXPECT_TRUE(executor->Run({.seed = seed, .sample_positions = positions}).ok());
  const Tensor y = *executor->Output("y");
  return {y.span<float>().begin(), y.span<float>().end()};
}

TEST(ExecutorTest, ADropoutMaskBelongsToTheSampleNotToTheShard) {
  const std::vector<float> whole = Mask(7, 100, 8);
  std::vector<float> halves = Mask(7, 100, 4);
  std::ranges::copy(Mask(7, 104, 4), std::back_inserter(halves));
  EXPECT_EQ(whole, halves);
  EXPECT_NE(whole, Mask(8, 100, 8));
  EXPECT_NE(whole, Mask(7, 1100, 8));
}

TEST(ExecutorTest, DropoutKeepsAboutTheShareAskedForAndScalesIt) {
  const std::vector<float> mask = Mask(3, 0, 256);
  const auto kept = std::ranges::count(mask, 2.0f);
  EXPECT_EQ(kept + std::ranges::count(mask, 0.0f), 4096);
  EXPECT_NEAR(static_cast<double>(kept), 2048, 200);
}

TEST(ExecutorTest, ARunWithoutAPositionForEachSampleIsRefused) {
  Graph g;
  g.MarkOutput("y", Dropout(g, g.Input("x", {4, 2}, DType::kF32), 0.5));
  const auto executor = MustCompile(g);
  const Tensor x({4, 2}, DType::kF32);
  ASSERT_TRUE(executor->Bind("x", x).ok());
  const std::vector<uint64_t> three = {1, 2, 3};
  EXPECT_EQ(Message(executor->Run({.seed = 1, .sample_positions = three})),
            "the graph draws random numbers for 4 samples, the run context has 3 positions");
}

TEST(ExecutorTest, RandomOpsMustAgreeOnTheBatch) {
  Graph g;
  const ValueId x = Dropout(g, g.Input("x", {4, 2}, DType::kF32), 0.5);
  g.MarkOutput("y", Dropout(g, Reshape(g, x, {8}), 0.5, "late"));
  EXPECT_EQ(
      Message(Executor::Compile(g, {}).status()),
      "late (dropout) draws for 8 samples, an earlier op for 4: the first axis must be the batch");
}

TEST(ExecutorTest, AFreeStandingCompileNeedsTheGraphNoLonger) {
  std::unique_ptr<Executor> executor;
  {
    Graph g;
    g.MarkOutput("y", Tanh(g, g.Input("x", {3}, DType::kF32)));
    executor = MustCompile(g);
  }
  const Tensor x = Counting({3});
  EXPECT_TRUE(executor->Bind("x", x).ok() && executor->Run({}).ok());
}

TEST(ExecutorTest, AProfileCountsRunsAndTimesEveryOpUntilItIsTakenAway) {
  Graph g;
  const ValueId x = g.Input("x", {64, 64}, DType::kF32);
  g.MarkOutput("y", Tanh(g, Relu(g, x, "first"), "second"));
  const auto executor = MustCompile(g);
  const Tensor data = Counting({64, 64});
  ASSERT_TRUE(executor->Bind("x", data).ok());
  Profile profile;
  executor->SetProfile(&profile);
  ASSERT_TRUE(executor->Run({}).ok());
  ASSERT_EQ(profile.ops.size(), 2u);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(executor->Run({}).ok());
  EXPECT_EQ(profile.runs, 3);
  EXPECT_EQ(profile.ops[0].node, "first");
  EXPECT_EQ(profile.ops[1].op, "tanh");
  EXPECT_EQ(executor->ImplementationNames()[1], "second: " + profile.ops[1].implementation);
  EXPECT_EQ(profile.ops[1].calls, 3);
  EXPECT_GT(profile.ops[1].time.count(), 0);
  executor->SetProfile(nullptr);
  ASSERT_TRUE(executor->Run({}).ok());
  EXPECT_EQ(profile.runs, 3);
}

TEST(ExecutorTest, AProfilesListenerHearsOfEveryCallInItsOrder) {
  Graph g;
  const ValueId x = g.Input("x", {64, 64}, DType::kF32);
  g.MarkOutput("y", Tanh(g, Relu(g, x, "first"), "second"));
  const auto executor = MustCompile(g);
  const Tensor data = Counting({64, 64});
  ASSERT_TRUE(executor->Bind("x", data).ok());
  std::vector<std::string> heard;
  Profile::Time last{};
  Profile profile;
  profile.listener = [&](const OpProfile& op, Profile::Time begin, Profile::Time end) {
    heard.push_back(op.node);
    EXPECT_LE(last, begin);
    EXPECT_LT(begin, end);
    last = end;
  };
  executor->SetProfile(&profile);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(executor->Run({}).ok());
  EXPECT_THAT(heard, ::testing::ElementsAre("first", "second", "first", "second"));
}

// As shards of two sizes do, whose kernels may differ.
TEST(ExecutorTest, ExecutorsThatShareAProfileAddToTheRowsThatTheyHaveInCommon) {
  const auto executor_for = [](bool with_tanh) {
    Graph g;
    ValueId y = Relu(g, g.Input("x", {64, 64}, DType::kF32), "first");
    if (with_tanh) y = Tanh(g, y, "second");
    g.MarkOutput("y", Scale(g, y, 2, "last"));
    return MustCompile(g);
  };
  const Tensor data = Counting({64, 64});
  Profile profile;
  for (const bool with_tanh : {false, true}) {
    const auto executor = executor_for(with_tanh);
    ASSERT_TRUE(executor->Bind("x", data).ok());
    executor->SetProfile(&profile);
    ASSERT_TRUE(executor->Run({}).ok());
  }
  EXPECT_EQ(profile.runs, 2);
  std::vector<std::pair<std::string, int64_t>> calls;
  for (const OpProfile& op : profile.ops) calls.emplace_back(op.node, op.calls);
  EXPECT_THAT(calls, ::testing::ElementsAre(std::pair("first", 2), std::pair("last", 2),
                                            std::pair("second", 1)));
}

TEST(ExecutorTest, AProfileKnowsWhereTheBackwardPassBegins) {
  Graph g;
  const ValueId x = g.Parameter("x", {2, 3}, DType::kF32);
  // The gradient of a sum is a constant: the first node of the backward pass is folded away.
  const ValueId loss = SumAll(g, Tanh(g, Scale(g, x, 2, "twice"), "forward"), "loss");
  const ValueId wrt[] = {x};
  const auto gradients = Differentiate(g, loss, wrt);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  g.MarkOutput("loss", loss);
  g.MarkOutput("gradient", gradients->front());
  Profile profile;
  MustCompile(g)->SetProfile(&profile);
  std::vector<std::string> forward, backward;
  for (const OpProfile& op : profile.ops) (op.backward ? backward : forward).push_back(op.op);
  EXPECT_THAT(forward, ::testing::ElementsAre("scale", "tanh", "sum_to"));
  EXPECT_THAT(backward, ::testing::IsSupersetOf({"tanh_grad", "scale"}));
}

}  // namespace
}  // namespace ringmaster::graph
