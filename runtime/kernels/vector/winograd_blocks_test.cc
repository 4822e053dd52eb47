#include "runtime/kernels/vector/winograd_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/convolution_nodes.h"
#include "runtime/kernels/vector/product.h"

namespace ringmaster::kernels::vector {
namespace {

using tensor::DType;
using tensor::Layout;

class WinogradBlocksTest : public ConvolutionTest {};

TEST_P(WinogradBlocksTest, AgreesWithTheReferenceInDoubleInAnyBlocksAndVectorsAndToTheSameBits) {
  const bool has_wide = __builtin_cpu_supports("avx512f");
  for (const Node& node : NodesOf(GetParam())) {
    if (node.inputs.size() == 3) continue;
    const auto reference = node.Make(DType::kF64, Selection::kReference);
    const std::vector<double> expected = node.Run<double>(*reference);
    double largest = 1;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    std::vector<float> first;
    for (const Layout layout : {Layout::kBlocks8, Layout::kBlocks16}) {
      for (const bool wide : {false, true}) {
        ASSERT_EQ(UseWideTiles(wide), !wide || has_wide);
        const auto primitive = node.Make(DType::kF32, Selection::kFastest, layout);
        ASSERT_EQ(primitive->name(), "vector/winograd") << node.op;
        const std::vector<float> got = node.Run<float>(*primitive, layout);
        if (first.empty()) {
          first = got;
          for (size_t i = 0; i < expected.size(); ++i)
            ASSERT_NEAR(got[i], expected[i], 4e-6 * largest) << node.op << " at " << i;
        }
        EXPECT_EQ(got, first) << node.op;
      }
    }
  }
}

// Results that fill the tiles and that end within one, that are of one tile, tiles that see only a
// corner of the image, all paddings, channels that are several chunks and that are not the same
// before and after, and more tiles than a block has, of which the last has fewer.
INSTANTIATE_TEST_SUITE_P(
    Shapes, WinogradBlocksTest,
    ::testing::Values(Convolution{4, 16, 16, 8, 8, 3, 1},     // whole tiles
                      Convolution{3, 32, 48, 7, 10, 3, 1},    // ends within tiles
                      Convolution{6, 48, 16, 9, 8, 3, 0},     // without padding
                      Convolution{5, 16, 32, 5, 10, 3, 2},    // with all that weights see
                      Convolution{17, 16, 80, 3, 3, 3, 1},    // one tile, and a chunk that is less
                      Convolution{5, 144, 16, 6, 6, 3, 1},    // many channels
                      Convolution{7, 16, 16, 26, 21, 3, 1}),  // several blocks of tiles
    [](const auto& info) {
      const Convolution& c = info.param;
      return fmt::format("Of{}x{}x{}x{}By{}Padded{}", c.batch, c.in, c.height, c.width, c.out,
                         c.padding);
    });

TEST_F(WinogradBlocksTest, LeavesToOthersWhatItIsNotFor) {
  const std::vector<Convolution> others = {
      {2, 16, 32, 12, 12, 5, 2},           // other windows
      {2, 16, 32, 12, 12, 3, 1, 2},        // strides
      {2, 16, 32, 12, 12, 3, 2, 1, 2},     // dilation
      {2, 32, 32, 12, 12, 3, 1, 1, 1, 2},  // groups
      {2, 16, 24, 12, 12, 3, 1},           // channels that do not fill a tile's columns
      {2, 24, 16, 12, 12, 3, 1},
      {9, 16, 16, 5, 5, 3, 1},    // tiles that are hardly filled
      {3, 16, 16, 8, 8, 3, 1},    // few tiles
      {4, 512, 512, 7, 7, 3, 1},  // more weights than that
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
