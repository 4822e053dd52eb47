// Convolutions that normalise their results where they write them: beside the two ops one after
// another, which have the same bits.
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/convolution_nodes.h"
#include "runtime/kernels/vector/split_product.h"

namespace ringmaster::kernels::vector {
namespace {

using tensor::DType;
using tensor::Layout;
using tensor::ValueSpec;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kEpsilon = 1e-5;

// x, weight, gamma, beta, mean, variance, addend; images in blocks of a layout.
struct Operands {
  Operands(const Convolution& c, Layout layout)
      : specs{{c.x(), DType::kF32, layout}, {c.weight(), DType::kF32}, {{c.out}, DType::kF32},
              {{c.out}, DType::kF32},       {{c.out}, DType::kF32},    {{c.out}, DType::kF32},
              {c.y(), DType::kF32, layout}} {
    constexpr size_t kVariance = 5;
    for (size_t i = 0; i < specs.size(); ++i)
      values.push_back(Drawn(specs[i].shape.elements(), i, i == kVariance ? 0.1F : -1.0F));
  }

  std::vector<const void*> Pointers() const {
    std::vector<const void*> pointers;
    for (const auto& v : values) pointers.push_back(v.data());
    return pointers;
  }

  std::vector<ValueSpec> specs;
  std::vector<std::vector<float>> values;
};

std::vector<float> ResultOf(Primitive& primitive, const std::vector<const void*>& in,
                            const ValueSpec& out) {
  std::vector<float> y(static_cast<size_t>(out.shape.elements()), kNan);
  RunOnce(primitive, in, {y.data()});
  return y;
}

class ConvolutionNormalisationTest : public ConvolutionTest {
 protected:
  // Of this kernel's size, by convolution and batch norm one after the other and by both at once.
  static void ExpectSameBits(const Convolution& c, Layout layout, bool plus, bool relu) {
    Operands operands(c, layout);
    operands.values[0][7] = kNan;
    // A channel of zeros of both signs.
    constexpr size_t kGamma = 2, kBeta = 3, kMean = 4;
    operands.values[kGamma][3] = 0;
    operands.values[kBeta][3] = -0.0F;
    operands.values[kMean][3] = 1;
    const std::span<const ValueSpec> specs = operands.specs;
    const std::vector<const void*> pointers = operands.Pointers();
    const ValueSpec y{c.y(), DType::kF32, layout};

    const Attributes attributes = c.attributes(relu).With("epsilon", kEpsilon);
    const auto convolution =
        Prepare({"conv2d", c.attributes(), specs.first(2), {&y, 1}}, Selection::kFastest);
    const auto both = Prepare({"conv2d_batch_norm", attributes, specs.first(plus ? 7 : 6), {&y, 1}},
                              Selection::kFastest);
    ASSERT_TRUE(both->name().starts_with("vector/")) << both->name();
    ASSERT_EQ(both->name(), convolution->name());
    const std::vector<float> got = ResultOf(*both, pointers, y);

    const std::vector<float> image = ResultOf(*convolution, pointers, y);
    std::vector<ValueSpec> of_norm(specs.begin() + 2, specs.end() - (plus ? 0 : 1));
    of_norm.insert(of_norm.begin(), y);
    std::vector<const void*> behind(pointers.begin() + 2, pointers.end());
    behind.insert(behind.begin(), image.data());
    const auto norm =
        Prepare({"batch_norm_inference", attributes, of_norm, {&y, 1}}, Selection::kFastest);
    const std::vector<float> expected = ResultOf(*norm, behind, y);

    size_t not_numbers = 0;
    for (const float v : expected) not_numbers += std::isnan(v) ? 1 : 0;
    EXPECT_GT(not_numbers, 0u);
    EXPECT_LT(not_numbers, expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool is_minus_zero = expected[i] == 0 && std::signbit(expected[i]);
      ASSERT_FALSE(relu && is_minus_zero) << "-0 at " << i;
      if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
      ASSERT_EQ(std::memcmp(&got[i], &expected[i], sizeof(float)), 0)
          << got[i] << " instead of " << expected[i] << " at " << i;
    }
  }

  // With and without the addend and ReLU.
  static void ExpectSameBits(const Convolution& c, Layout layout) {
    for (const bool plus : {false, true}) {
      for (const bool relu : {false, true}) {
        SCOPED_TRACE(fmt::format("{} channels to a block, addend {}, ReLU {}",
                                 static_cast<int>(layout), plus, relu));
        ASSERT_NO_FATAL_FAILURE(ExpectSameBits(c, layout, plus, relu));
      }
    }
  }
};

TEST_P(ConvolutionNormalisationTest, HasTheBitsOfTheTwoOpsOneAfterAnother) {
  const Convolution& c = GetParam();
  if (c.kernel > 1) {
    for (const Layout layout : {Layout::kBlocks8, Layout::kBlocks16}) {
      SCOPED_TRACE(c.y().ToString());
      ASSERT_NO_FATAL_FAILURE(ExpectSameBits(c, layout));
    }
  } else if (SplitProduct::Runs()) {
    ASSERT_NO_FATAL_FAILURE(ExpectSameBits(c, Layout::kBlocks16));
  } else {
    GTEST_SKIP() << "this processor has no matrix unit";
  }
}

// Tiles that leave the image and that do not, of both sizes of window, more channels than are
// multiplied together; and products whose sums are added up in one block or in several.
INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvolutionNormalisationTest,
    ::testing::Values(Convolution{2, 32, 16, 16, 16, 3, 1}, Convolution{3, 16, 80, 13, 9, 3, 1},
                      Convolution{2, 16, 32, 17, 18, 3, 0}, Convolution{4, 64, 64, 13, 13, 5, 2},
                      Convolution{2, 128, 256, 16, 16, 1, 0}, Convolution{5, 144, 176, 7, 7, 1, 0},
                      Convolution{1, 2064, 304, 21, 9, 1, 0}, Convolution{3, 64, 96, 20, 20, 1, 0}),
    [](const auto& info) {
      const Convolution& c = info.param;
      return fmt::format("Of{}x{}x{}x{}To{}By{}", c.batch, c.in, c.height, c.width, c.out,
                         c.kernel);
    });

TEST_F(ConvolutionNormalisationTest, AnAddendThatLiesOtherwiseIsLeftToOthers) {
  const Convolution c{2, 32, 16, 16, 16, 3, 1};
  Operands operands(c, Layout::kBlocks8);
  const ValueSpec y{c.y(), DType::kF32, Layout::kBlocks8};
  const Attributes attributes = c.attributes().With("epsilon", kEpsilon);
  EXPECT_TRUE(TakesVectors({"conv2d_batch_norm", attributes, operands.specs, {&y, 1}}));
  operands.specs.back().layout = Layout::kRowMajor;
  EXPECT_FALSE(TakesVectors({"conv2d_batch_norm", attributes, operands.specs, {&y, 1}}));
}

}  // namespace
}  // namespace ringmaster::kernels::vector
