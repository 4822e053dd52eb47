// Kernels of this folder beside the reference kernels: of sizes that are no whole vectors and of
// more than one chunk, of labels that are none, and of infinities and what is no number.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/memory.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/tensor/random.h"

namespace ringmaster::kernels::vector {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::ValueSpec;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A node whose i32 input, if it has one, holds labels of `classes`.
struct AgreementNode {
  std::string name, op;
  std::vector<ValueSpec> inputs, outputs;
  int32_t classes = 0;
  Attributes attributes = {};
};

void PrintTo(const AgreementNode& node, std::ostream* os) {
  *os << node.name;
}

ValueSpec F32(const Shape& shape) {
  return {shape, DType::kF32};
}
ValueSpec I32(const Shape& shape) {
  return {shape, DType::kI32};
}

// Of adaptive pooling, from an image to what is pooled, and back.
std::vector<AgreementNode> PoolingsOf(const std::string& name, const Shape& image,
                                      const Shape& pooled) {
  return {{name + "Mean", "adaptive_avg_pool2d", {F32(image)}, {F32(pooled)}},
          {name + "MeanGrad", "adaptive_avg_pool2d_grad", {F32(pooled)}, {F32(image)}},
          {name + "Max", "adaptive_max_pool2d", {F32(image)}, {F32(pooled)}},
          {name + "MaxGrad", "adaptive_max_pool2d_grad", {F32(image), F32(pooled)}, {F32(image)}}};
}
std::vector<AgreementNode> Poolings() {
  const std::tuple<const char*, Shape, Shape> sizes[] = {
      {"Few", {2, 3, 7, 11}, {2, 3, 3, 4}},
      {"Rows", {2, 3, 7, 19}, {2, 3, 3, 1}},
      {"AsMany", {1, 2, 3, 9}, {1, 2, 3, 9}},
      {"More", {1, 2, 3, 9}, {1, 2, 8, 20}},
      {"ManyPlanes", {16, 32, 9, 10}, {16, 32, 4, 4}}};
  std::vector<AgreementNode> nodes;
  for (const auto& [name, image, pooled] : sizes) {
    const auto some = PoolingsOf(name, image, pooled);
    nodes.insert(nodes.end(), some.begin(), some.end());
  }
  return nodes;
}
AgreementNode FixedNormGrad(const std::string& name, bool relu) {
  const Shape image{3, 2, 5, 5}, channels{2};
  std::vector<ValueSpec> inputs = {F32(image), F32(channels), F32(channels), F32(channels),
                                   F32(image)};
  if (relu) inputs.push_back(F32(channels));
  return {name,   "batch_norm_inference_grad",
          inputs, {F32(image), F32(channels), F32(channels)},
          0,      {{"epsilon", 100.0}, {"relu", int64_t{relu}}}};
}

const std::vector<AgreementNode>& Nodes() {
  const Shape rows{5, 19}, many{5 * 4096 + 5}, scalar{};
  static const std::vector<AgreementNode> nodes = {
      {"LogSoftmax", "log_softmax", {F32(rows)}, {F32(rows)}},
      {"LogSoftmaxOfManyRows", "log_softmax", {F32({700, 30})}, {F32({700, 30})}},
      {"LogSoftmaxGrad", "log_softmax_grad", {F32(rows), F32(rows)}, {F32(rows)}},
      {"Nll", "nll", {F32(rows), I32({5})}, {F32(scalar), F32(scalar)}, 19},
      {"NllOfFewClasses", "nll", {F32({9, 3}), I32({9})}, {F32(scalar), F32(scalar)}, 3},
      {"NllOfManyClasses", "nll", {F32({5, 9000}), I32({5})}, {F32(scalar), F32(scalar)}, 9000},
      {"BinaryCrossEntropy",
       "binary_cross_entropy",
       {F32(rows), I32(rows)},
       {F32(scalar), F32(scalar)},
       2},
      {"BinaryCrossEntropyOfMany",
       "binary_cross_entropy",
       {F32(many), I32(many)},
       {F32(scalar), F32(scalar)},
       2},
      {"BinaryCrossEntropyGrad",
       "binary_cross_entropy_grad",
       {F32(rows), I32(rows), F32(scalar)},
       {F32(rows)},
       2},
      {"SquaredError", "squared_error", {F32(rows), F32(rows)}, {F32(scalar)}},
      {"SquaredErrorOfMany", "squared_error", {F32(many), F32(many)}, {F32(scalar)}},
      {"SquaredErrorGrad", "squared_error_grad", {F32(rows), F32(rows), F32(scalar)}, {F32(rows)}},
      {"Scale", "scale", {F32(rows)}, {F32(rows)}, 0, {{"factor", -1.75}}},
      {"ExactGelu", "exact_gelu", {F32(many)}, {F32(many)}},
      {"ExactGeluGrad", "exact_gelu_grad", {F32(rows), F32(rows)}, {F32(rows)}},
      {"Gelu", "gelu", {F32(many)}, {F32(many)}},
      {"GeluGrad", "gelu_grad", {F32(rows), F32(rows)}, {F32(rows)}},
      {"Sigmoid", "sigmoid", {F32(many)}, {F32(many)}},
      {"SigmoidGrad", "sigmoid_grad", {F32(rows), F32(rows)}, {F32(rows)}},
      {"Silu", "silu", {F32(many)}, {F32(many)}},
      {"SiluGrad", "silu_grad", {F32(rows), F32(rows)}, {F32(rows)}},
      {"Tanh", "tanh", {F32(many)}, {F32(many)}},
      {"TanhGrad", "tanh_grad", {F32(rows), F32(rows)}, {F32(rows)}},
      {"SumOfRows", "sum_to", {F32({22, 139})}, {F32({139})}},
      {"SumOfFewRows", "sum_to", {F32({3, 5})}, {F32({5})}},
      FixedNormGrad("FixedNormGrad", false),
      FixedNormGrad("FixedNormGradOfRelu", true),
  };
  return nodes;
}

// Small whole numbers, so that some are equal; gradients of them are 0 here and there, too.
std::vector<float> NumbersOf(const ValueSpec& spec, tensor::RandomStream& stream) {
  std::vector<float> values(static_cast<size_t>(spec.shape.elements()));
  for (float& v : values) v = static_cast<float>(stream.Below(9)) - 4;
  return values;
}

class AgreementTest : public ::testing::TestWithParam<AgreementNode> {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
      GTEST_SKIP() << "this processor lacks AVX2 or FMA";
    tensor::RandomStream stream({.seed = 7});
    for (const ValueSpec& spec : node().inputs) {
      numbers_.push_back(NumbersOf(spec, stream));
      if (spec.dtype != DType::kI32) continue;
      for (int64_t i = 0; i < spec.shape.elements(); ++i) {
        labels_.push_back(
            static_cast<int32_t>(stream.Below(static_cast<uint32_t>(node().classes))));
      }
    }
  }

  static const AgreementNode& node() { return GetParam(); }
  std::vector<float>& numbers(size_t input) { return numbers_[input]; }
  std::vector<int32_t>& labels() { return labels_; }

  std::vector<std::vector<float>> Run(Selection selection) {
    const auto primitive =
        Prepare({node().op, node().attributes, node().inputs, node().outputs}, selection);
    EXPECT_EQ(primitive->name(), selection == Selection::kReference ? "reference" : "vector/avx2");
    const device::Buffer scratch(primitive->scratch_bytes());
    std::vector<const void*> in;
    for (size_t i = 0; i < node().inputs.size(); ++i) {
      const bool is_label = node().inputs[i].dtype == DType::kI32;
      in.push_back(is_label ? static_cast<const void*>(labels_.data()) : numbers_[i].data());
    }
    std::vector<std::vector<float>> results;
    std::vector<void*> out;
    for (const ValueSpec& spec : node().outputs)
      results.emplace_back(static_cast<size_t>(spec.shape.elements()), -77.0F);
    for (auto& result : results) out.push_back(result.data());
    primitive->Run({in.data(), out.data(), scratch.data(), nullptr});
    return results;
  }

  // `magnitude` of the operands, whose last bits are what is left where sums cancel.
  void ExpectTheReferences(const std::string& what, float magnitude = 1) {
    const auto expected = Run(Selection::kReference), got = Run(Selection::kFastest);
    for (size_t o = 0; o < expected.size(); ++o) {
      for (size_t i = 0; i < expected[o].size(); ++i) {
        const float e = expected[o][i], g = got[o][i];
        if (!std::isfinite(e)) {
          ASSERT_TRUE(std::isnan(e) ? std::isnan(g) : g == e)
              << what << ": output " << o << "[" << i << "] is " << g << ", not " << e;
        } else {
          ASSERT_NEAR(g, e, 1e-5F * std::max(1.0F, std::abs(e)) + 1e-7F * magnitude)
              << what << ": output " << o << "[" << i << "]";
        }
      }
    }
  }

 private:
  std::vector<std::vector<float>> numbers_;
  std::vector<int32_t> labels_;
};

TEST_P(AgreementTest, ResultsAreTheReferences) {
  ExpectTheReferences("small numbers");
}

// Whichever place of whole vectors or of what is left behind them it has.
TEST_P(AgreementTest, ResultsAreTheReferencesOfInfinitiesAndWhatIsNoNumber) {
  for (size_t input = 0; input < node().inputs.size(); ++input) {
    if (node().inputs[input].dtype == DType::kI32) continue;
    const size_t count = numbers(input).size();
    for (const size_t place : {size_t{0}, size_t{1}, count / 2, count - 1}) {
      if (place >= count) continue;
      for (const float value : {kNan, kInfinity, -kInfinity, 3e38F, 1e-40F}) {
        const float before = std::exchange(numbers(input)[place], value);
        ExpectTheReferences("input " + std::to_string(input) + "[" + std::to_string(place) +
                            "] = " + std::to_string(value));
        numbers(input)[place] = before;
      }
    }
  }
}

TEST_P(AgreementTest, ResultsAreTheReferencesOfLabelsThatAreNone) {
  if (labels().empty()) return;
  for (const size_t place : {size_t{0}, labels().size() / 2, labels().size() - 1}) {
    for (const int32_t label : {-1, node().classes, std::numeric_limits<int32_t>::max()}) {
      const int32_t before = std::exchange(labels()[place], label);
      ExpectTheReferences("label[" + std::to_string(place) + "] = " + std::to_string(label));
      labels()[place] = before;
    }
  }
}

// Exponentials that are too large or too small for a float.
TEST_P(AgreementTest, ResultsAreTheReferencesOfLargeNumbers) {
  for (const float factor : {10.0F, 30.0F, 1e4F}) {
    const std::vector<float> before = numbers(0);
    for (float& v : numbers(0)) v *= factor;
    ExpectTheReferences("times " + std::to_string(factor), factor);
    numbers(0) = before;
  }
}

// Products that only processors without AVX-512 leave to kernels of this folder.
class NarrowAgreementTest : public AgreementTest {
 protected:
  void SetUp() override {
    AgreementTest::SetUp();
    UseWideTiles(false);
  }
  ~NarrowAgreementTest() override { UseWideTiles(true); }
};

const std::vector<AgreementNode>& NarrowNodes() {
  const auto product = [](bool ta, bool tb) -> Attributes {
    return {{"transpose_a", int64_t{ta}}, {"transpose_b", int64_t{tb}}};
  };
  const Attributes with_relu = {{"relu", int64_t{1}}};
  static const std::vector<AgreementNode> nodes = {
      {"MatMul",
       "matmul",
       {F32({131, 300}), F32({300, 170})},
       {F32({131, 170})},
       0,
       product(false, false)},
      {"MatMulOfTransposed",
       "matmul",
       {F32({300, 131}), F32({170, 300})},
       {F32({131, 170})},
       0,
       product(true, true)},
      {"Linear", "linear", {F32({130, 270}), F32({150, 270}), F32({150})}, {F32({130, 150})}},
      {"LinearWithRelu",
       "linear",
       {F32({130, 270}), F32({150, 270}), F32({150})},
       {F32({130, 150})},
       0,
       with_relu},
      {"SmallMatrices",
       "batch_matmul",
       {F32({2, 3, 5, 7}), F32({2, 3, 7, 9})},
       {F32({2, 3, 5, 9})},
       0,
       product(false, false)},
      {"ALoneMatrix",
       "batch_matmul",
       {F32({1, 40, 33}), F32({1, 33, 50})},
       {F32({1, 40, 50})},
       0,
       product(false, false)},
      {"SmallTransposedMatrices",
       "batch_matmul",
       {F32({3, 7, 5}), F32({3, 9, 7})},
       {F32({3, 5, 9})},
       0,
       product(true, true)},
      {"LargeMatrices",
       "batch_matmul",
       {F32({2, 131, 300}), F32({2, 170, 300})},
       {F32({2, 131, 170})},
       0,
       product(false, true)},
  };
  return nodes;
}

TEST_P(NarrowAgreementTest, ResultsAreTheReferences) {
  ExpectTheReferences("small numbers");
}

TEST_P(NarrowAgreementTest, ResultsAreTheReferencesOfInfinitiesAndWhatIsNoNumber) {
  for (size_t input = 0; input < node().inputs.size(); ++input) {
    for (const float value : {kNan, kInfinity}) {
      float& place = numbers(input)[numbers(input).size() / 2];
      const float before = std::exchange(place, value);
      ExpectTheReferences("input " + std::to_string(input) + ": " + std::to_string(value));
      place = before;
    }
  }
}

// That wider vectors make the same bits.
class WidthsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!UseWideTiles(true)) GTEST_SKIP() << "there are no vectors of sixteen floats";
  }
  ~WidthsTest() override { UseWideTiles(true); }

  // A node's result, of numbers that are the same each time.
  static std::vector<float> Run(bool wide, const std::string& op,
                                const std::vector<ValueSpec>& inputs, const ValueSpec& output) {
    UseWideTiles(wide);
    tensor::RandomStream stream({.seed = 3});
    std::vector<std::vector<float>> numbers;
    std::vector<const void*> from;
    for (const ValueSpec& input : inputs) {
      std::vector<float>& values = numbers.emplace_back(input.shape.elements());
      for (float& v : values) v = 24 * (tensor::ToUniform(stream.Next()) - 0.5F);
      from.push_back(values.data());
    }
    std::vector<float> y(static_cast<size_t>(output.shape.elements()));
    void* to = y.data();
    Prepare({op, {}, inputs, {&output, 1}}, Selection::kFastest)
        ->Run({from.data(), &to, nullptr, nullptr});
    return y;
  }

  static void ExpectTheSameBits(const std::string& op, const std::vector<ValueSpec>& inputs,
                                const ValueSpec& output) {
    const std::vector<float> narrow = Run(false, op, inputs, output),
                             wide = Run(true, op, inputs, output);
    EXPECT_EQ(std::memcmp(narrow.data(), wide.data(), wide.size() * sizeof(float)), 0) << op;
  }
};

// Whole vectors of both, and what is left behind each.
TEST_F(WidthsTest, ActivationsHaveTheSameBits) {
  const ValueSpec row = F32({16 * 3 + 8 + 5});
  for (const std::string op : {"exact_gelu", "gelu", "sigmoid", "silu", "tanh"}) {
    ExpectTheSameBits(op, {row}, row);
    ExpectTheSameBits(op + "_grad", {row, row}, row);
  }
}

TEST_F(WidthsTest, SumsOfRowsHaveTheSameBits) {
  ExpectTheSameBits("sum_to", {F32({22, 139})}, F32({139}));
}

INSTANTIATE_TEST_SUITE_P(Nodes, NarrowAgreementTest, ::testing::ValuesIn(NarrowNodes()),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Nodes, AgreementTest, ::testing::ValuesIn(Nodes()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(AdaptivePooling, AgreementTest, ::testing::ValuesIn(Poolings()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ringmaster::kernels::vector
