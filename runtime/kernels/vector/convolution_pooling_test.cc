// Convolutions that are max-pooled at once: beside the two ops one after another, which have the
// same bits, and the weights' gradient beside the reference's in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/convolution_nodes.h"
#include "runtime/kernels/window.h"

namespace ringmaster::kernels::vector {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::ValueSpec;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Attributes Halving() {
  const std::vector<int64_t> two{2, 2}, none{0, 0};
  return {{"window", two}, {"stride", two}, {"padding", none}};
}

Shape Halved(const Shape& image) {
  return {image.dim(0), image.dim(1), image.dim(2) / 2, image.dim(3) / 2};
}

struct Result {
  std::vector<float> y;
  std::vector<uint8_t> taps;
};

class ConvolutionPoolingTest : public ConvolutionTest {
 protected:
  const Convolution& c() const { return GetParam(); }
  Shape pooled() const { return Halved(c().y()); }
  std::vector<float> x() const { return Drawn(c().x().elements(), 3); }
  std::vector<float> weight() const { return Drawn(c().weight().elements(), 4); }
  std::vector<float> bias() const { return Drawn(c().out, 5); }
  ValueSpec taps() const { return {{pooled().elements()}, DType::kU8}; }

  static ValueSpec Floats(const Shape& shape) { return {shape, DType::kF32}; }

  // Of a convolution of that image.
  struct Operands {
    Operands(const ConvolutionPoolingTest& test, const std::vector<float>& x, bool has_bias)
        : weight(test.weight()),
          bias(test.bias()),
          specs{Floats(test.c().x()), Floats(test.c().weight()), Floats({test.c().out})},
          pointers{x.data(), weight.data(), bias.data()} {
      specs.resize(has_bias ? 3 : 2);
      pointers.resize(specs.size());
    }

    const std::vector<float> weight, bias;
    std::vector<ValueSpec> specs;
    std::vector<const void*> pointers;
  };

  Result AtOnce(const std::vector<float>& x, bool relu, bool has_bias) const {
    const Operands operands(*this, x, has_bias);
    const ValueSpec out[] = {Floats(pooled()), taps()};
    const Attributes attributes = WithPooling(c().attributes(relu), Halving());
    const auto primitive =
        Prepare({"conv2d_max_pool2d", attributes, operands.specs, out}, Selection::kFastest);
    EXPECT_TRUE(primitive->name().starts_with("vector/")) << primitive->name();
    Result made{std::vector<float>(static_cast<size_t>(pooled().elements()), kNan),
                std::vector<uint8_t>(static_cast<size_t>(pooled().elements()), 255)};
    RunOnce(*primitive, operands.pointers, {made.y.data(), made.taps.data()});
    return made;
  }

  // By the convolution of its own, and the reference of pooling.
  Result AfterOneAnother(const std::vector<float>& x, bool relu, bool has_bias) const {
    const Operands operands(*this, x, has_bias);
    const ValueSpec image = Floats(c().y());
    std::vector<float> between(static_cast<size_t>(c().y().elements()));
    RunOnce(*Prepare({"conv2d", c().attributes(relu), operands.specs, {&image, 1}},
                     Selection::kFastest),
            operands.pointers, {between.data()});
    const ValueSpec out[] = {Floats(pooled()), taps()};
    Result made{std::vector<float>(static_cast<size_t>(pooled().elements())),
                std::vector<uint8_t>(static_cast<size_t>(pooled().elements()))};
    RunOnce(*Prepare({"max_pool2d_taps", Halving(), {&image, 1}, out}, Selection::kReference),
            {between.data()}, {made.y.data(), made.taps.data()});
    return made;
  }

  template <typename Float>
  std::vector<Float> WeightGradient(Selection selection, DType dtype) const {
    std::vector<Float> x, dy;
    for (const float v : this->x()) x.push_back(v);
    for (const float v : Drawn(pooled().elements(), 6)) dy.push_back(v);
    std::vector<uint8_t> taps(dy.size());
    for (size_t i = 0; i < taps.size(); ++i) taps[i] = static_cast<uint8_t>(i * 7 / 3 % 4);
    const ValueSpec in[] = {{c().x(), dtype}, {pooled(), dtype}, this->taps()},
                    out{c().weight(), dtype};
    const Attributes attributes = WithPooling(c().attributes(), Halving());
    const auto primitive =
        Prepare({"conv2d_max_pool2d_grad_weight", attributes, in, {&out, 1}}, selection);
    EXPECT_EQ(primitive->name().starts_with("vector/"), selection == Selection::kFastest);
    std::vector<Float> dweight(static_cast<size_t>(c().weight().elements()), kNan);
    RunOnce(*primitive, {x.data(), dy.data(), taps.data()}, {dweight.data()});
    return dweight;
  }
};

// NaN is what it is.
void ExpectSame(const Result& a, const Result& b) {
  ASSERT_EQ(a.y.size(), b.y.size());
  for (size_t i = 0; i < a.y.size(); ++i) {
    ASSERT_EQ(a.taps[i], b.taps[i]) << "at " << i;
    if (std::isnan(a.y[i]) && std::isnan(b.y[i])) continue;
    ASSERT_EQ(a.y[i], b.y[i]) << "at " << i;
  }
}

TEST_P(ConvolutionPoolingTest, MakesTheBitsOfBothOpsOneAfterAnother) {
  for (const bool relu : {false, true}) {
    for (const bool has_bias : {false, true})
      ExpectSame(AtOnce(x(), relu, has_bias), AfterOneAnother(x(), relu, has_bias));
  }
}

TEST_P(ConvolutionPoolingTest, TakesTheFirstOfEqualsAndLosesNothingThatIsNoNumber) {
  std::vector<float> image(x().size(), 0.5F);
  image[image.size() / 2] = kNan;
  image[image.size() / 3] = std::numeric_limits<float>::infinity();
  ExpectSame(AtOnce(image, false, true), AfterOneAnother(image, false, true));
}

TEST_P(ConvolutionPoolingTest, TheWeightsGradientAgreesWithTheReferenceInDouble) {
  const auto expected = WeightGradient<double>(Selection::kReference, DType::kF64);
  const auto made = WeightGradient<float>(Selection::kFastest, DType::kF32);
  double largest = 1;
  for (const double v : expected) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < made.size(); ++i)
    ASSERT_NEAR(made[i], expected[i], 1e-6 * largest) << "at " << i;
}

// LeNet's; windows of all sizes; rows that end in each place of a register, an odd row and column
// that are not pooled, padding, and channels for each kind of tile.
INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvolutionPoolingTest,
    ::testing::Values(Convolution{5, 1, 20, 28, 28, 5, 0}, Convolution{2, 3, 6, 12, 9, 3, 1},
                      Convolution{3, 2, 1, 9, 11, 2, 0}, Convolution{1, 4, 13, 11, 14, 7, 3},
                      Convolution{2, 1, 2, 8, 8, 1, 0}, Convolution{2, 3, 3, 13, 15, 6, 2},
                      Convolution{1, 1, 4, 10, 13, 4, 1}, Convolution{2, 2, 5, 12, 12, 5, 2}),
    [](const ::testing::TestParamInfo<Convolution>& info) {
      const Convolution& c = info.param;
      return fmt::format("{}x{}by{}of{}to{}", c.height, c.width, c.kernel, c.in, c.out);
    });

}  // namespace
}  // namespace ringmaster::kernels::vector
