#include "runtime/kernels/vector/direct_convolution.h"

#include <algorithm>
#include <cmath>
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

class DirectConvolutionTest : public ConvolutionTest {
 protected:
  void SetUp() override {
    ConvolutionTest::SetUp();
    if (!device::MayUse(device::Vectors::kAvx512)) GTEST_SKIP() << "AVX-512 is not to be used";
  }

  // Of the kernels for processors without AVX-512.
  static std::vector<float> Gathered(const Node& node) {
    UseWideTiles(false);
    const auto primitive = node.Make(DType::kF32, Selection::kFastest);
    EXPECT_EQ(primitive->name(), "vector/avx2");
    const std::vector<float> result = node.Run<float>(*primitive);
    UseWideTiles(true);
    return result;
  }
};

TEST_P(DirectConvolutionTest, AgreesWithTheReferenceInDouble) {
  for (const Node& node : NodesOf(GetParam())) {
    if (node.op == "conv2d_grad_input") continue;
    const auto reference = node.Make(DType::kF64, Selection::kReference);
    const std::vector<double> expected = node.Run<double>(*reference);
    double largest = 1;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    const auto primitive = node.Make(DType::kF32, Selection::kFastest);
    ASSERT_EQ(primitive->name(), "vector/direct") << node.op;
    const std::vector<float> result = node.Run<float>(*primitive);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(result[i], expected[i], 1e-6 * largest) << node.op << " at " << i;
  }
}

TEST_P(DirectConvolutionTest, MakesTheBitsOfTheGatheredMatrixForward) {
  for (const Node& node : NodesOf(GetParam())) {
    if (node.op != "conv2d") continue;
    const auto primitive = node.Make(DType::kF32, Selection::kFastest);
    EXPECT_EQ(node.Run<float>(*primitive), Gathered(node));
  }
}

// Rows that end in each lane, results that end within a register and within a pair, channels that
// fill tiles and that do not, one channel and several, with zeros around the image and without.
INSTANTIATE_TEST_SUITE_P(
    Shapes, DirectConvolutionTest,
    ::testing::Values(Convolution{3, 1, 20, 28, 28, 5, 0},   // LeNet's
                      Convolution{2, 1, 20, 28, 28, 3, 1},   // with batch norm
                      Convolution{2, 1, 1, 15, 15, 1, 0},    // an odd number of registers
                      Convolution{17, 2, 14, 16, 18, 4, 0},  // rows as long as the shortest
                      Convolution{9, 3, 31, 17, 37, 3, 2},   // more zeros than windows need
                      Convolution{2, 1, 29, 20, 23, 7, 3}),  // a window of 49 taps
    [](const auto& info) {
      const Convolution& c = info.param;
      return fmt::format("Of{}x{}x{}x{}By{}x{}", c.batch, c.in, c.height, c.width, c.out, c.kernel);
    });

TEST_F(DirectConvolutionTest, LeavesToOthersWhatItIsNotFor) {
  const std::vector<Convolution> others = {
      {2, 1, 20, 18, 18, 5, 0},           // short rows
      {1, 1, 20, 28, 28, 5, 0},           // one sample
      {2, 1, 20, 36, 36, 5, 0, 2},        // strides
      {2, 1, 20, 36, 36, 5, 0, 1, 2},     // dilation
      {2, 2, 20, 28, 28, 5, 0, 1, 1, 2},  // groups
  };
  for (const Convolution& c : others) {
    for (const Node& node : NodesOf(c)) {
      EXPECT_NE(node.Make(DType::kF32, Selection::kFastest)->name(), "vector/direct")
          << node.op << " of " << ::testing::PrintToString(c);
    }
  }
}

}  // namespace
}  // namespace ringmaster::kernels::vector
