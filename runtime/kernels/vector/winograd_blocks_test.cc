#include "runtime/kernels/vector/winograd_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/device/vectors.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/convolution_nodes.h"
#include "runtime/kernels/vector/product.h"

namespace ringmaster::kernels::vector {
namespace {

using tensor::DType;
using tensor::Layout;
using tensor::ValueSpec;

class WinogradBlocksTest : public ConvolutionTest {};

// How far results may be from exact ones, as a part of the largest.
double ToleranceOf(const Convolution& c) {
  return c.kernel == 3 ? 4e-6 : 2e-5;
}

// Beside the reference in double.
void ExpectRight(const Node& node, const std::vector<float>& got, double tolerance) {
  const auto reference = node.Make(DType::kF64, Selection::kReference);
  const std::vector<double> expected = node.Run<double>(*reference);
  double largest = 1;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], tolerance * largest) << node.op << " at " << i;
}

TEST_P(WinogradBlocksTest, AgreesWithTheReferenceInDoubleInAnyBlocksAndVectorsAndToTheSameBits) {
  const bool has_wide = device::MayUse(device::Vectors::kAvx512);
  for (const Node& node : NodesOf(GetParam())) {
    if (node.inputs.size() == 3) continue;
    std::vector<float> first;
    for (const Layout layout : {Layout::kBlocks8, Layout::kBlocks16}) {
      for (const bool wide : {false, true}) {
        ASSERT_EQ(UseWideTiles(wide), !wide || has_wide);
        const auto primitive = node.Make(DType::kF32, Selection::kFastest, layout);
        ASSERT_EQ(primitive->name(), "vector/winograd") << node.op;
        const std::vector<float> got = node.Run<float>(*primitive, layout);
        if (first.empty()) {
          first = got;
          ASSERT_NO_FATAL_FAILURE(ExpectRight(node, got, ToleranceOf(GetParam())));
        }
        EXPECT_EQ(got, first) << node.op;
      }
    }
  }
}

// Values from a fixed seed, of which some are 0.
std::vector<float> Values(const tensor::Shape& shape) {
  tensor::RandomStream stream({.seed = 7});
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (float& one : values) one = 2 * tensor::ToUniform(stream.Next()) - 1;
  for (size_t i = 0; i < values.size(); i += 5) values[i] = 0;
  return values;
}

TEST_P(WinogradBlocksTest, KeepsTheInputsGradientWhereXIsPositiveAlsoInXsPlace) {
  for (const Node& node : NodesOf(GetParam())) {
    if (node.op != "conv2d_grad_input") continue;
    for (const Layout layout : {Layout::kBlocks8, Layout::kBlocks16}) {
      const auto plain = node.Make(DType::kF32, Selection::kFastest, layout);
      ASSERT_EQ(plain->name(), "vector/winograd");
      const ValueSpec dy{node.inputs[0], DType::kF32, layout}, dx{node.output, DType::kF32, layout};
      const ValueSpec inputs[] = {dy, {node.inputs[1], DType::kF32}, dx};
      const auto fused = Prepare({node.op, node.attributes, inputs, {&dx, 1}}, Selection::kFastest);
      ASSERT_NE(fused, nullptr);
      ASSERT_EQ(fused->name(), "vector/winograd");
      EXPECT_TRUE(fused->MayOverwrite(2, 0));
      EXPECT_FALSE(fused->MayOverwrite(0, 0));
      const ValueSpec in_rows[] = {dy, {node.inputs[1], DType::kF32}, {node.output, DType::kF32}};
      EXPECT_EQ(Prepare({node.op, node.attributes, in_rows, {&dx, 1}}, Selection::kFastest),
                nullptr);

      const std::vector<float> of_dy = Values(node.inputs[0]), of_weight = Values(node.inputs[1]);
      std::vector<float> x = Values(node.output);
      x[x.size() / 2] = std::numeric_limits<float>::quiet_NaN();
      std::vector<float> scratch(
          std::max(plain->scratch_bytes(), fused->scratch_bytes()) / sizeof(float) + 16);
      const auto run = [&](Primitive& primitive, const float* signs, std::vector<float>& into) {
        void* place = scratch.data();
        size_t space = scratch.size() * sizeof(float);
        std::align(64, primitive.scratch_bytes(), place, space);
        const void* operands[] = {of_dy.data(), of_weight.data(), signs};
        void* outputs[] = {into.data()};
        primitive.Run({operands, outputs, place, nullptr});
      };
      std::vector<float> expected(x.size()), apart(x.size()), in_place = x;
      run(*plain, nullptr, expected);
      for (size_t i = 0; i < x.size(); ++i) expected[i] = x[i] > 0 ? expected[i] : 0;
      run(*fused, x.data(), apart);
      EXPECT_EQ(apart, expected);
      run(*fused, in_place.data(), in_place);
      EXPECT_EQ(in_place, expected);
    }
  }
}

// Results that fill the tiles and that end within one, that are of one tile, tiles that see only a
// corner of the image, all paddings, channels that are several chunks and that are not the same
// before and after, and more tiles than a block has, of which the last has fewer.
INSTANTIATE_TEST_SUITE_P(
    Shapes, WinogradBlocksTest,
    ::testing::Values(Convolution{4, 16, 16, 8, 8, 3, 1},      // whole tiles
                      Convolution{3, 32, 48, 7, 10, 3, 1},     // ends within tiles
                      Convolution{6, 48, 16, 9, 8, 3, 0},      // without padding
                      Convolution{5, 16, 32, 5, 10, 3, 2},     // with all that weights see
                      Convolution{17, 16, 80, 3, 3, 3, 1},     // one tile, and a chunk that is less
                      Convolution{5, 144, 16, 6, 6, 3, 1},     // many channels
                      Convolution{7, 16, 16, 26, 21, 3, 1},    // several blocks of tiles
                      Convolution{32, 16, 64, 8, 8, 5, 2},     // whole tiles of 5 x 5
                      Convolution{15, 32, 48, 7, 11, 5, 2},    // ends within tiles
                      Convolution{7, 48, 16, 24, 24, 5, 0},    // without padding
                      Convolution{5, 16, 96, 20, 23, 5, 4},    // with all that weights see
                      Convolution{103, 16, 80, 4, 4, 5, 2},    // one tile, and a chunk that is less
                      Convolution{4, 144, 16, 16, 16, 5, 1},   // many channels
                      Convolution{12, 16, 32, 26, 21, 5, 2}),  // several blocks of tiles
    [](const auto& info) {
      const Convolution& c = info.param;
      return fmt::format("Of{}x{}x{}x{}By{}x{}Padded{}", c.batch, c.in, c.height, c.width, c.out,
                         c.kernel, c.padding);
    });

// Any seed may draw errors that the cases above do not have.
TEST_F(WinogradBlocksTest, AgreesWithTheReferenceInDoubleForShapesAtRandom) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  int taken = 0;
  for (int i = 0; i < 20; ++i) {
    const int64_t kernel = draw(0, 1) == 0 ? 3 : 5;
    const Convolution c{draw(1, 8),       16 * draw(1, 4), 16 * draw(1, 4),    draw(kernel, 13),
                        draw(kernel, 13), kernel,          draw(0, kernel - 1)};
    SCOPED_TRACE(::testing::PrintToString(c));
    const Layout layout = draw(0, 1) == 0 ? Layout::kBlocks8 : Layout::kBlocks16;
    for (const Node& node : NodesOf(c)) {
      const auto primitive = node.Make(DType::kF32, Selection::kFastest, layout);
      if (primitive->name() != "vector/winograd") continue;
      ++taken;
      ASSERT_NO_FATAL_FAILURE(
          ExpectRight(node, node.Run<float>(*primitive, layout), 1.5F * ToleranceOf(c)));
    }
  }
  EXPECT_GT(taken, 0);
}

TEST_F(WinogradBlocksTest, LeavesToOthersWhatItIsNotFor) {
  const std::vector<Convolution> others = {
      {2, 16, 32, 12, 12, 7, 3},           // other windows
      {2, 16, 32, 12, 12, 3, 1, 2},        // strides
      {2, 16, 32, 12, 12, 3, 2, 1, 2},     // dilation
      {2, 32, 32, 12, 12, 3, 1, 1, 1, 2},  // groups
      {2, 16, 24, 12, 12, 3, 1},           // channels that do not fill a tile's columns
      {2, 24, 16, 12, 12, 3, 1},
      {9, 16, 16, 5, 5, 3, 1},     // tiles that are hardly filled
      {3, 16, 16, 8, 8, 3, 1},     // few tiles
      {4, 512, 512, 7, 7, 3, 1},   // more weights than that
      {32, 64, 64, 6, 6, 5, 2},    // of 5 x 5: tiles that are hardly filled
      {15, 128, 128, 4, 4, 5, 2},  // few tiles
      {4, 512, 512, 7, 7, 5, 2},   // more weights than that
      {8, 16, 32, 14, 14, 5, 2},   // few channels for as many tiles
  };
  for (const Convolution& c : others) {
    for (const Node& node : NodesOf(c)) {
      const auto primitive = node.Make(DType::kF32, Selection::kFastest, Layout::kBlocks8);
      ASSERT_NE(primitive, nullptr);
      EXPECT_NE(primitive->name(), "vector/winograd")
          << node.op << " of " << ::testing::PrintToString(c);
    }
  }
}

// Of 5 x 5 pixels without padding the results fill a tile, but the gradient by the pixels
// themselves hardly fills its four; with all that weights see it is the other way about.
TEST_F(WinogradBlocksTest, JudgesTheInputsGradientByTheTilesOfItsOwn) {
  const auto takes = [](const Convolution& c, std::string_view op) {
    for (const Node& node : NodesOf(c)) {
      if (node.op == op && node.inputs.size() == 2)
        return node.Make(DType::kF32, Selection::kFastest, Layout::kBlocks8)->name() ==
               "vector/winograd";
    }
    ADD_FAILURE() << "no " << op;
    return false;
  };
  const Convolution without{32, 16, 16, 5, 5, 3, 0}, with{32, 16, 16, 3, 3, 3, 2};
  EXPECT_TRUE(takes(without, "conv2d_grad_weight"));
  EXPECT_FALSE(takes(without, "conv2d_grad_input"));
  EXPECT_FALSE(takes(with, "conv2d_grad_weight"));
  EXPECT_TRUE(takes(with, "conv2d_grad_input"));
}

TEST_F(WinogradBlocksTest, LeavesToOthersWhatHasABias) {
  const Node node = NodesOf({4, 16, 16, 8, 8, 3, 1}).front();
  ASSERT_EQ(node.inputs.size(), 3U);
  EXPECT_NE(node.Make(DType::kF32, Selection::kFastest, Layout::kBlocks8)->name(),
            "vector/winograd");
}

// What is no number must be seen in the loss.
TEST_F(WinogradBlocksTest, LetsPassWhatIsNoNumber) {
  const Convolution c{4, 16, 16, 8, 8, 3, 1};
  const Node node{"conv2d", c.attributes(true), {c.x(), c.weight()}, c.y(), 1, true};
  const auto primitive = node.Make(DType::kF32, Selection::kFastest, Layout::kBlocks8);
  ASSERT_EQ(primitive->name(), "vector/winograd");
  std::vector<float> x(static_cast<size_t>(c.x().elements())),
      weight(static_cast<size_t>(c.weight().elements()), 1), y(x.size());
  x[100] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> scratch(primitive->scratch_bytes() / sizeof(float));
  const void* inputs[] = {x.data(), weight.data()};
  void* outputs[] = {y.data()};
  primitive->Run({inputs, outputs, scratch.data(), nullptr});
  EXPECT_TRUE(std::isnan(y[100]));
}

}  // namespace
}  // namespace ringmaster::kernels::vector
