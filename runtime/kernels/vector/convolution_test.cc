// Convolutions by rows of the result, of groups and of windows whose taps lie apart: what the
// library has its product of matrices for.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/device/vectors.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/convolution_nodes.h"
#include "runtime/tensor/random.h"

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

class ConvolutionOfBlocksTest : public ConvolutionByRowsTest {};

TEST_P(ConvolutionOfBlocksTest, AgreesWithTheReferenceInDouble) {
  for (const Node& node : NodesOf(GetParam())) ExpectTheReference(node, FastestImageLayout());
}

// Whose product takes memory from the heap in each call.
TEST(ConvolutionChoiceTest, LeavesNoneToTheLibrarysProductOfMatrices) {
  if (!device::MayUse(device::Vectors::kAvx2)) GTEST_SKIP() << "this processor lacks AVX2 or FMA";
  constexpr uint64_t kSeed = 29;
  tensor::RandomStream stream({.seed = kSeed});
  const auto any = [&](const std::vector<int64_t>& values) {
    return values[stream.Below(static_cast<uint32_t>(values.size()))];
  };
  for (int round = 0; round < 1500; ++round) {
    Convolution c{2,
                  any({1, 3, 16, 64}),
                  any({8, 16, 64}),
                  any({1, 2, 4, 16, 33}),
                  any({1, 3, 8, 40}),
                  any({1, 2, 3, 5, 11, 25}),
                  0,
                  any({1, 2, 4}),
                  any({1, 1, 2})};
    c.padding = any({0, c.kernel / 2, c.kernel - 1});
    if (c.in == c.out) c.groups = any({1, 1, c.in / 4, c.in});
    if (c.Places(c.height) < 1 || c.Places(c.width) < 1) continue;
    if (c.dilation * (c.kernel - 1) >= std::min(c.height, c.width) + 2 * c.padding) continue;
    for (const Node& node : NodesOf(c)) {
      const auto primitive = node.Make(DType::kF32, Selection::kFastest);
      ASSERT_NE(primitive, nullptr);
      EXPECT_EQ(primitive->name().find("gemm:jit"), std::string::npos)
          << "seed " << kSeed << ", " << node.op << " of " << ::testing::PrintToString(c);
    }
  }
}

std::string NameOf(const ::testing::TestParamInfo<Convolution>& info) {
  const Convolution& c = info.param;
  return fmt::format("Of{}x{}x{}x{}By{}x{}In{}", c.batch, c.in, c.height, c.width, c.out, c.kernel,
                     c.groups);
}

// Whose channels fill blocks of sixteen.
const auto kInBlocks =
    ::testing::Values(Convolution{1, 512, 16, 6, 7, 3, 2, 1, 2},      // a lone image
                      Convolution{3, 32, 64, 9, 11, 3, 1, 2, 1, 16},  // with strides
                      Convolution{2, 16, 32, 8, 8, 3, 4, 1, 4, 8},    // most taps outside
                      Convolution{4, 64, 64, 2, 2, 3, 1});            // few pixels
INSTANTIATE_TEST_SUITE_P(InBlocks, ConvolutionOfBlocksTest, kInBlocks, NameOf);
INSTANTIATE_TEST_SUITE_P(InRows, ConvolutionByRowsTest, kInBlocks, NameOf);
INSTANTIATE_TEST_SUITE_P(
    OddOnes, ConvolutionByRowsTest,
    ::testing::Values(Convolution{2, 8, 16, 90, 100, 3, 1, 1, 2, 4},  // rows in several parts
                      Convolution{2, 6, 9, 12, 13, 5, 2, 1, 1, 3},    // channels that are no blocks
                      Convolution{2, 3, 8, 200, 210, 11, 2, 4}),      // AlexNet's first
    NameOf);

}  // namespace
}  // namespace ringmaster::kernels::vector
