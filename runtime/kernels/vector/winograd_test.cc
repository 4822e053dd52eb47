#include "runtime/kernels/vector/winograd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/convolution_nodes.h"
#include "runtime/kernels/vector/product.h"

namespace ringmaster::kernels::vector {
namespace {

using tensor::DType;
using tensor::ValueSpec;

class WinogradTest : public ConvolutionTest {};

TEST_P(WinogradTest, AgreesWithTheReferenceInDoubleWithAnyVectorsAndToTheSameBits) {
  const bool has_wide = __builtin_cpu_supports("avx512f");
  for (const Node& node : NodesOf(GetParam())) {
    const auto reference = node.Make(DType::kF64, Selection::kReference);
    const std::vector<double> expected = node.Run<double>(*reference);
    double largest = 1;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    ASSERT_TRUE(UseWideTiles(false));
    const auto primitive = node.Make(DType::kF32, Selection::kFastest);
    ASSERT_EQ(primitive->name(), "vector/winograd") << node.op;
    const std::vector<float> narrow = node.Run<float>(*primitive);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(narrow[i], expected[i], 2e-6 * largest) << node.op << " at " << i;
    ASSERT_EQ(UseWideTiles(true), has_wide);
    if (has_wide) {
      const auto wide = node.Make(DType::kF32, Selection::kFastest);
      EXPECT_EQ(node.Run<float>(*wide), narrow) << node.op;
    }
  }
}

// Rows of tiles that are whole quads and that are not, results that end within a tile, panels that
// are full and that are not, channels that fill a panel and that do not, and batches that fall into
// parts of different sizes.
INSTANTIATE_TEST_SUITE_P(
    Shapes, WinogradTest,
    ::testing::Values(Convolution{3, 20, 50, 12, 12, 5, 0},   // LeNet's
                      Convolution{2, 20, 50, 14, 14, 3, 1},   // with batch norm
                      Convolution{1, 8, 8, 16, 16, 3, 1},     // one panel, filled
                      Convolution{2, 9, 17, 15, 13, 3, 1},    // ends within tiles
                      Convolution{17, 8, 16, 13, 27, 3, 0},   // two panels, the last in part
                      Convolution{19, 11, 9, 8, 7, 5, 2},     // half of a panel's quads
                      Convolution{2, 10, 33, 12, 22, 5, 1},   // four panels
                      Convolution{2, 10, 12, 29, 15, 3, 2}),  // more padding than weights need
    [](const auto& info) {
      const Convolution& c = info.param;
      return fmt::format("Of{}x{}x{}x{}By{}x{}", c.batch, c.in, c.height, c.width, c.out, c.kernel);
    });

TEST_F(WinogradTest, LeavesToOthersWhatItIsNotFor) {
  const std::vector<Convolution> others = {
      {2, 4, 20, 12, 12, 5, 0},             // few channels
      {2, 20, 20, 12, 12, 7, 0},            // other windows
      {2, 20, 50, 24, 24, 3, 1, 2},         // strides
      {2, 20, 50, 16, 16, 3, 2, 1, 2},      // dilation
      {2, 20, 50, 14, 14, 3, 1, 1, 1, 10},  // groups
      {2, 20, 50, 5, 5, 3, 1},              // few places
      {2, 64, 256, 14, 14, 3, 1},           // large weights
  };
  for (const Convolution& c : others) {
    for (const Node& node : NodesOf(c)) {
      EXPECT_NE(node.Make(DType::kF32, Selection::kFastest)->name(), "vector/winograd")
          << node.op << " of " << ::testing::PrintToString(c);
    }
  }
}

// What is no number must be seen in the loss.
TEST_F(WinogradTest, LetsPassWhatIsNoNumber) {
  const Convolution c{1, 8, 8, 16, 16, 3, 1};
  const ValueSpec specs[] = {{c.x(), DType::kF32}, {c.weight(), DType::kF32}},
                  out{c.y(), DType::kF32};
  const auto primitive =
      Prepare({"conv2d", c.attributes(true), specs, {&out, 1}}, Selection::kFastest);
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
