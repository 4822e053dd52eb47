// Convolutions by rows of the result, of groups and of windows whose taps lie apart: what the
// library has its product of matrices for.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/convolution_nodes.h"

namespace ringmaster::kernels::vector {
namespace {

using tensor::DType;
using tensor::Layout;

class ConvolutionByRowsTest : public ConvolutionTest {
 protected:
  static void ExpectTheReference(const Node& node, Layout layout) {
    const auto reference = node.Make(DType::kF64, Selection::kReference);
    const std::vector<double> expected = node.Run<double>(*reference);
    double largest = 1;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    const auto primitive = node.Make(DType::kF32, Selection::kFastest, layout);
    EXPECT_EQ(primitive->name().find("gemm"), std::string::npos) << primitive->name();
    const std::vector<float> result = node.Run<float>(*primitive, layout);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(result[i], expected[i], 2e-6 * largest) << node.op << " at " << i;
  }
};

TEST_P(ConvolutionByRowsTest, AgreesWithTheReferenceInDouble) {
  for (const Node& node : NodesOf(GetParam())) ExpectTheReference(node, Layout::kRowMajor);
}

TEST_P(ConvolutionByRowsTest, AgreesWithTheReferenceOfImagesInBlocks) {
  const Layout layout = FastestImageLayout();
  const auto block = static_cast<int64_t>(layout);
  if (GetParam().in % block != 0 || GetParam().out % block != 0)
    GTEST_SKIP() << "its channels fill no blocks of " << block;
  for (const Node& node : NodesOf(GetParam())) ExpectTheReference(node, layout);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvolutionByRowsTest,
    ::testing::Values(Convolution{2, 8, 16, 90, 100, 3, 1, 1, 2, 4},  // rows in several parts
                      Convolution{1, 512, 16, 6, 7, 3, 2, 1, 2},      // a lone image
                      Convolution{3, 32, 64, 9, 11, 3, 1, 2, 1, 16},  // with strides
                      Convolution{2, 16, 32, 8, 8, 3, 4, 1, 4, 8},    // most taps outside
                      Convolution{2, 6, 9, 12, 13, 5, 2, 1, 1, 3},    // channels that are no blocks
                      Convolution{2, 3, 8, 200, 210, 11, 2, 4},       // AlexNet's first
                      Convolution{4, 64, 64, 2, 2, 3, 1}),            // few pixels
    [](const auto& info) {
      const Convolution& c = info.param;
      return fmt::format("Of{}x{}x{}x{}By{}x{}In{}", c.batch, c.in, c.height, c.width, c.out,
                         c.kernel, c.groups);
    });

}  // namespace
}  // namespace ringmaster::kernels::vector
