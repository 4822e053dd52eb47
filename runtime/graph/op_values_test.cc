// Results worked out by hand, for what gradient checks and comparisons between kernels cannot see.
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/graph/executor.h"
#include "runtime/graph/ops.h"

namespace ringmaster::graph {
namespace {

using tensor::Tensor;

struct Feed {
  const char* name;
  Shape shape;
  std::vector<float> values;
};

Tensor MakeF32(const Feed& feed) {
  Tensor t(feed.shape, DType::kF32);
  std::copy(feed.values.begin(), feed.values.end(), t.data<float>());
  return t;
}

// Builds a graph over the feeds (and `indices`, named "i"), runs it, and gives each output's
// values.
class OpValuesTest : public ::testing::TestWithParam<kernels::Selection> {
 protected:
  using Model = std::function<std::vector<ValueId>(Graph&, const std::vector<ValueId>&)>;

  std::vector<std::vector<float>> Compute(const std::vector<Feed>& feeds, const Model& model,
                                          const std::vector<int32_t>& indices = {}) {
    Graph g;
    std::vector<ValueId> ids;
    std::vector<Tensor> tensors;
    for (const Feed& feed : feeds) {
      ids.push_back(g.Input(feed.name, feed.shape, DType::kF32));
      tensors.push_back(MakeF32(feed));
    }
    Tensor index_tensor({static_cast<int64_t>(indices.size())}, DType::kI32);
    std::copy(indices.begin(), indices.end(), index_tensor.data<int32_t>());
    if (!indices.empty()) ids.push_back(g.Input("i", index_tensor.shape(), DType::kI32));
    const std::vector<ValueId> results = model(g, ids);
    for (size_t i = 0; i < results.size(); ++i) g.MarkOutput(std::to_string(i), results[i]);
    auto executor = Executor::Compile(g, {.kernels = GetParam()});
    EXPECT_TRUE(executor.ok()) << executor.status();
    for (size_t i = 0; i < feeds.size(); ++i)
      EXPECT_TRUE((*executor)->Bind(feeds[i].name, tensors[i]).ok());
    if (!indices.empty()) {
      EXPECT_TRUE((*executor)->Bind("i", index_tensor).ok());
    }
    EXPECT_TRUE((*executor)->Run({}).ok());
    std::vector<std::vector<float>> values;
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor t = *(*executor)->Output(std::to_string(i));
      values.emplace_back(t.span<float>().begin(), t.span<float>().end());
    }
    return values;
  }

  static void ExpectNear(const std::vector<float>& got, const std::vector<double>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5) << "at " << i;
  }
};

TEST_P(OpValuesTest, ConvolutionCrossCorrelatesAndPadsWithZeros) {
  const auto y = Compute(
      {{"x", {1, 1, 2, 2}, {1, 2, 3, 4}}, {"w", {1, 1, 2, 2}, {10, 20, 30, 40}}, {"b", {1}, {5}}},
      [](Graph& g, const auto& v) {
        return std::vector{Conv2d(g, v[0], v[1], v[2], {{1, 1}, {1, 0}})};
      });
  // Rows: zeros over [1 2], [1 2] over [3 4], [3 4] over zeros.
  ExpectNear(y[0], {5 + 30 + 80, 5 + 10 + 40 + 90 + 160, 5 + 30 + 80});
}

TEST_P(OpValuesTest, ADilatedKernelSkipsPlacesAndAGroupSeesItsOwnChannels) {
  const auto y = Compute(
      {{"x", {1, 2, 1, 4}, {1, 2, 3, 4, 10, 20, 30, 40}}, {"w", {2, 1, 1, 2}, {1, 2, 3, 4}}},
      [](Graph& g, const auto& v) {
        return std::vector{Conv2d(g, v[0], v[1], ValueId{}, {.dilation = {1, 2}, .groups = 2})};
      });
  ExpectNear(y[0], {1 + 6, 2 + 8, 30 + 120, 60 + 160});
}

TEST_P(OpValuesTest, MeansLeavePaddingOutWhenAskedAndAdaptToASize) {
  const Feed x{"x", {1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}};
  const auto y = Compute({x}, [](Graph& g, const auto& v) {
    return std::vector{AvgPool2d(g, v[0], {2, 2}, {{2, 2}, {1, 1}, false}),
                       AdaptiveAvgPool2d(g, v[0], {1, 2}), AdaptiveAvgPool2d(g, v[0], {1, 1})};
  });
  ExpectNear(y[0], {1, 2.5, 4, 5.5});
  ExpectNear(y[1], {(1 + 2 + 4 + 5) / 4.0, (2 + 3 + 5 + 6) / 4.0});
  ExpectNear(y[2], {3.5});
}

TEST_P(OpValuesTest, MaximaAdaptToASizeToo) {
  const Feed x{"x", {1, 1, 2, 3}, {1, 6, 3, 4, 5, 2}};
  const auto y = Compute({x}, [](Graph& g, const auto& v) {
    return std::vector{AdaptiveMaxPool2d(g, v[0], {2, 2}), AdaptiveMaxPool2d(g, v[0], {1, 1})};
  });
  ExpectNear(y[0], {6, 6, 5, 5});
  ExpectNear(y[1], {6});
}

TEST_P(OpValuesTest, BoxesAreJoinedCutAndPadded) {
  const auto y =
      Compute({{"a", {2, 2}, {1, 2, 3, 4}}, {"b", {2, 1}, {5, 6}}}, [](Graph& g, const auto& v) {
        const int64_t begin[] = {1, 1}, before[] = {0, 1}, after[] = {1, 0};
        const ValueId joined = Concat(g, v, 1);
        return std::vector{joined, Slice(g, joined, begin, {1, 2}), Pad(g, v[1], before, after)};
      });
  ExpectNear(y[0], {1, 2, 5, 3, 4, 6});
  ExpectNear(y[1], {4, 6});
  ExpectNear(y[2], {0, 5, 0, 6, 0, 0});
}

TEST_P(OpValuesTest, LinearTakesWeightRowsAsOutputs) {
  const auto y =
      Compute({{"x", {1, 2}, {1, 2}}, {"w", {3, 2}, {1, 0, 0, 1, 2, 3}}, {"b", {3}, {0, 10, 100}}},
              [](Graph& g, const auto& v) { return std::vector{Linear(g, v[0], v[1], v[2])}; });
  ExpectNear(y[0], {1, 12, 108});
}

TEST_P(OpValuesTest, PoolingTakesTheLargestAndTheMeanWithPaddingCounted) {
  const Feed x{"x", {1, 1, 2, 2}, {-1, -2, -3, -4}};
  const auto y = Compute({x}, [](Graph& g, const auto& v) {
    return std::vector{MaxPool2d(g, v[0], {2, 2}, {{1, 1}, {1, 1}}),
                       AvgPool2d(g, v[0], {2, 2}, {{1, 1}, {1, 1}})};
  });
  ExpectNear(y[0], {-1, -1, -2, -1, -1, -2, -3, -3, -4});
  ExpectNear(y[1], {-0.25, -0.75, -0.5, -1, -2.5, -1.5, -0.75, -1.75, -1});
}

TEST_P(OpValuesTest, ActivationsHaveTheirKnownValues) {
  const auto y = Compute({{"x", {3}, {-1, 0, 2}}}, [](Graph& g, const auto& v) {
    return std::vector{Relu(g, v[0]), Tanh(g, v[0]), Gelu(g, v[0]), Silu(g, v[0])};
  });
  ExpectNear(y[0], {0, 0, 2});
  ExpectNear(y[1], {std::tanh(-1.0), 0, std::tanh(2.0)});
  ExpectNear(y[2], {-0.158808, 0, 1.954598});  // PyTorch's gelu(approximate="tanh")
  ExpectNear(y[3], {-1 / (1 + std::exp(1.0)), 0, 2 / (1 + std::exp(-2.0))});
}

TEST_P(OpValuesTest, BatchNormUsesTheBatchsBiasedVariancePerChannel) {
  const auto y =
      Compute({{"x", {2, 2}, {1, 10, 3, 30}}, {"gamma", {2}, {2, 1}}, {"beta", {2}, {0, 5}}},
              [](Graph& g, const auto& v) {
                const BatchNormResult r = BatchNorm(g, v[0], v[1], v[2], 1e-10);
                return std::vector{r.y, r.mean, r.variance};
              });
  ExpectNear(y[0], {-2, 4, 2, 6});
  ExpectNear(y[1], {2, 20});
  ExpectNear(y[2], {1, 100});
}

TEST_P(OpValuesTest, LayerNormUsesEachRowsOwnStatistics) {
  const auto y = Compute(
      {{"x", {2, 2}, {1, 3, 10, 30}}, {"gamma", {2}, {1, 1}}, {"beta", {2}, {0, 1}}},
      [](Graph& g, const auto& v) { return std::vector{LayerNorm(g, v[0], v[1], v[2], 1e-10)}; });
  ExpectNear(y[0], {-1, 2, -1, 2});
}

TEST_P(OpValuesTest, TheLossIsTheSumOverLabelsAndTheFirstOfEqualsCounts) {
  const auto y = Compute({{"logits", {3, 2}, {0, 0, 0, 0, 1, 3}}},
                         [](Graph& g, const auto& v) {
                           const LossResult r = SoftmaxCrossEntropy(g, v[0], v[1]);
                           return std::vector{r.loss, r.correct};
                         },
                         {0, 1, 1});
  ExpectNear(y[0], {2 * std::log(2.0) + std::log1p(std::exp(-2.0))});
  ExpectNear(y[1], {2});
}

// torch.nn.functional's cross_entropy(label_smoothing=0.1), nll_loss and
// binary_cross_entropy_with_logits, reduction="sum".
TEST_P(OpValuesTest, LossesHaveTheirKnownValues) {
  const auto y =
      Compute({{"logits", {2, 3}, {1, 2, 3, 0, -1, 4}}},
              [](Graph& g, const auto& v) {
                const LossResult nll = Nll(g, LogSoftmax(g, v[0]), v[1]);
                return std::vector{SoftmaxCrossEntropy(g, v[0], v[1], 0.1).loss,
                                   SoftmaxCrossEntropy(g, v[0], v[1]).loss, nll.loss, nll.correct};
              },
              {2, 1});
  const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0));
  const double second = std::log(1.0 + std::exp(-1.0) + std::exp(4.0));
  const double plain = first - 3 + second + 1;
  ExpectNear(y[0], {0.9 * plain + 0.1 * (first - 2 + second - 1)});
  ExpectNear(y[1], {plain});
  ExpectNear(y[2], {plain});
  ExpectNear(y[3], {1});
}

// torch.nn.functional's mse_loss against one_hot, over the classes.
TEST_P(OpValuesTest, TheMeanSquareIsOfScoresAndOnesAtTheLabels) {
  const auto y = Compute({{"scores", {2, 4}, {1, 2, 0, 0, 3, 0, 0, 5}}},
                         [](Graph& g, const auto& v) {
                           const LossResult r = MeanSquare(g, v[0], v[1]);
                           return std::vector{r.loss, r.correct, OneHot(g, v[1], 4)};
                         },
                         {1, 0});
  ExpectNear(y[0], {(1 + 1) / 4.0 + (4 + 25) / 4.0});
  ExpectNear(y[1], {1});
  ExpectNear(y[2], {0, 1, 0, 0, 1, 0, 0, 0});
}

TEST_P(OpValuesTest, EachOfManyLabelsHasALogitOfItsOwn) {
  const auto y = Compute({{"logits", {4}, {0, 2, -1000, 10}}, {"target", {4}, {1, 2, -1000, 8}}},
                         [](Graph& g, const auto& v) {
                           const LossResult r = BinaryCrossEntropy(g, v[0], v[2]);
                           return std::vector{r.loss, r.correct, SquaredError(g, v[0], v[1])};
                         },
                         {0, 1, 0, 0});
  ExpectNear(y[0],
             {std::log(2.0) + std::log1p(std::exp(-2.0)) + 0 + 10 + std::log1p(std::exp(-10.0))});
  ExpectNear(y[1], {3});
  ExpectNear(y[2], {1 + 4});
}

TEST_P(OpValuesTest, LargeLogitsDoNotOverflow) {
  const auto y = Compute(
      {{"logits", {1, 2}, {1000, 0}}},
      [](Graph& g, const auto& v) { return std::vector{SoftmaxCrossEntropy(g, v[0], v[1]).loss}; },
      {1});
  ExpectNear(y[0], {1000});
}

TEST_P(OpValuesTest, ALabelOrTokenOutsideIsSeenAsNaN) {
  const auto y =
      Compute({{"logits", {2, 2}, {0, 0, 0, 0}}},
              [](Graph& g, const auto& v) {
                return std::vector{
                    SoftmaxCrossEntropy(g, v[0], v[1]).loss, Embedding(g, v[0], v[1]),
                    Nll(g, v[0], v[1]).loss, MeanSquare(g, v[0], v[1]).loss,
                    BinaryCrossEntropy(g, Reshape(g, SumTo(g, v[0], {2, 1}), {2}), v[1]).loss};
              },
              {0, 2});
  for (const size_t loss : {0, 2, 3, 4}) EXPECT_TRUE(std::isnan(y[loss][0])) << loss;
  EXPECT_EQ(y[1][1], 0);
  EXPECT_TRUE(std::isnan(y[1][2]));
}

TEST_P(OpValuesTest, AttentionSeesOnlyThePastAndItself) {
  // One head of width 1 over three steps; columns are query, key, value. All keys are 0, so every
  // step takes the mean of the values up to it.
  const auto y =
      Compute({{"qkv", {1, 3, 3}, {1, 0, 3, 1, 0, 9, 1, 0, 30}}},
              [](Graph& g, const auto& v) { return std::vector{CausalAttention(g, v[0], 1)}; });
  ExpectNear(y[0], {3, 6, 14});
}

TEST_P(OpValuesTest, TransposeOrdersAxesAndProductsOfElementsBroadcast) {
  const auto y = Compute({{"x", {2, 3}, {1, 2, 3, 4, 5, 6}}, {"b", {3, 1}, {10, 20, 30}}},
                         [](Graph& g, const auto& v) {
                           const int64_t axes[] = {1, 0};
                           const ValueId turned = Transpose(g, v[0], axes);
                           return std::vector{turned, Multiply(g, turned, v[1])};
                         });
  ExpectNear(y[0], {1, 4, 2, 5, 3, 6});
  ExpectNear(y[1], {10, 40, 40, 100, 90, 180});
}

TEST_P(OpValuesTest, MeansAndMaximaKeepTheirAxesWithOnePlace) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto y = Compute({{"x", {2, 3}, {1, 7, 4, -5, -6, -10}}, {"odd", {2, 2}, {nan, 3, 1, nan}}},
                         [](Graph& g, const auto& v) {
                           const int64_t first[] = {0}, last[] = {-1};
                           return std::vector{MeanOver(g, v[0], last),
                                              MaxOver(g, v[0], last),
                                              MaxOver(g, v[0], first),
                                              MaxOver(g, v[1], last),
                                              Subtract(g, v[0], MaxOver(g, v[0], last)),
                                              Divide(g, v[0], MeanOver(g, v[0], last))};
                         });
  ExpectNear(y[0], {4, -7});
  ExpectNear(y[1], {7, -5});
  ExpectNear(y[2], {1, 7, 4});
  EXPECT_TRUE(std::isnan(y[3][0]) && std::isnan(y[3][1]));
  ExpectNear(y[4], {-6, 0, -3, 0, -1, -5});
  ExpectNear(y[5], {0.25, 1.75, 1, 5 / 7.0, 6 / 7.0, 10 / 7.0});
}

// torch.nn.functional.gelu
TEST_P(OpValuesTest, ExactGeluIsByTheErrorFunction) {
  const auto y = Compute({{"x", {4}, {-1, 0, 1, 6}}},
                         [](Graph& g, const auto& v) { return std::vector{ExactGelu(g, v[0])}; });
  ExpectNear(y[0], {-0.15865525, 0, 0.84134475, 6});
}

TEST_P(OpValuesTest, SoftmaxSharesOutARowHoweverLargeItsElements) {
  const auto y = Compute({{"x", {2, 2}, {1000, 1000, 0, -std::log(3.0F)}}},
                         [](Graph& g, const auto& v) { return std::vector{Softmax(g, v[0])}; });
  ExpectNear(y[0], {0.5, 0.5, 0.75, 0.25});
}

TEST_P(OpValuesTest, ABatchOfProductsIsEachPairsOwn) {
  const auto y =
      Compute({{"a", {2, 1, 2}, {1, 2, 3, 4}}, {"b", {2, 2, 1}, {5, 6, 7, 8}}},
              [](Graph& g, const auto& v) { return std::vector{BatchMatMul(g, v[0], v[1])}; });
  ExpectNear(y[0], {1 * 5 + 2 * 6, 3 * 7 + 4 * 8});
}

INSTANTIATE_TEST_SUITE_P(Kernels, OpValuesTest,
                         ::testing::Values(kernels::Selection::kReference,
                                           kernels::Selection::kFastest),
                         [](const auto& info) {
                           return info.param == kernels::Selection::kReference ? "Reference"
                                                                               : "Fastest";
                         });

}  // namespace
}  // namespace ringmaster::graph
