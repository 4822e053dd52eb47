#include "runtime/kernels/vector/split_convolution.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/kernels/vector/convolution_nodes.h"
#include "runtime/kernels/vector/split_product.h"

namespace ringmaster::kernels::vector {
namespace {

using tensor::DType;
using tensor::Layout;

constexpr char kName[] = "vector/amx";

class SplitConvolutionTest : public ConvolutionTest {
 protected:
  void SetUp() override {
    if (!SplitProduct::Runs()) GTEST_SKIP() << "this processor has no matrix unit";
  }
};

TEST_P(SplitConvolutionTest, AgreesWithTheReferenceInDouble) {
  const Convolution& c = GetParam();
  for (const Node& node : NodesOf(c)) {
    const auto primitive = node.Make(DType::kF32, Selection::kFastest, Layout::kBlocks16);
    const bool makes_weights = node.op == "conv2d_grad_weight";
    const bool pays = !makes_weights || std::min(c.in, c.out) >= 128;
    ASSERT_EQ(primitive->name() == kName, pays) << node.op << " by " << primitive->name();
    if (!pays) continue;
    const std::vector<float> got = node.Run<float>(*primitive, Layout::kBlocks16);
    const auto reference = node.Make(DType::kF64, Selection::kReference);
    const std::vector<double> expected = node.Run<double>(*reference);
    double largest = 1;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], 2e-6 * largest) << node.op << " at " << i;
  }
}

// Planes that fill strips and that do not, that are smaller than one, fewer channels than a strip
// has beside many, channels that end within one, and so few that only images are worth it.
INSTANTIATE_TEST_SUITE_P(
    Shapes, SplitConvolutionTest,
    ::testing::Values(Convolution{2, 128, 256, 16, 16, 1, 0}, Convolution{5, 144, 176, 7, 7, 1, 0},
                      Convolution{40, 256, 128, 3, 6, 1, 0}, Convolution{1, 272, 304, 21, 9, 1, 0},
                      Convolution{2, 64, 128, 25, 25, 1, 0}, Convolution{3, 96, 64, 20, 20, 1, 0}),
    [](const auto& info) {
      const Convolution& c = info.param;
      return fmt::format("Of{}x{}x{}x{}To{}", c.batch, c.in, c.height, c.width, c.out);
    });

TEST_F(SplitConvolutionTest, LeavesOtherConvolutionsToOthers) {
  const auto takes = [](const Convolution& c, Layout layout = Layout::kBlocks16) {
    bool any = false;
    for (const Node& node : NodesOf(c)) {
      const auto primitive = node.Make(DType::kF32, Selection::kFastest, layout);
      any = any || (primitive != nullptr && primitive->name() == kName);
    }
    return any;
  };
  EXPECT_TRUE(takes({4, 128, 128, 16, 16, 1, 0}));
  EXPECT_FALSE(takes({4, 128, 128, 16, 16, 1, 0}, Layout::kBlocks8));
  EXPECT_FALSE(takes({4, 128, 128, 16, 16, 1, 0}, Layout::kRowMajor));
  EXPECT_FALSE(takes({4, 128, 128, 16, 16, 3, 1}));
  EXPECT_FALSE(takes({4, 128, 128, 16, 16, 1, 1}));
  EXPECT_FALSE(takes({4, 128, 128, 16, 16, 1, 0, 2}));
  EXPECT_FALSE(takes({4, 256, 256, 16, 16, 1, 0, 1, 1, 2}));
  EXPECT_FALSE(takes({4, 48, 128, 16, 16, 1, 0}));
  EXPECT_FALSE(takes({512, 128, 128, 2, 2, 1, 0})) << "strips would be empty but for a few pixels";
}

}  // namespace
}  // namespace ringmaster::kernels::vector
