// Batch norms that are max-pooled at once: beside the two ops one after another, which have the
// same bits but for the sums of images in rows, and beside the reference's gradient in double.
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
#include "runtime/kernels/window.h"
#include "runtime/tensor/random.h"

namespace ringmaster::kernels::vector {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::ValueSpec;

// What a node reads or writes: floats, or places within windows.
struct Operand {
  ValueSpec spec;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<uint8_t> places;

  explicit Operand(const ValueSpec& of) : spec(of) {
    const auto count = static_cast<size_t>(spec.shape.elements());
    if (spec.dtype == DType::kU8) {
      places.assign(count, 255);
    } else if (spec.dtype == DType::kF64) {
      doubles.assign(count, std::numeric_limits<double>::quiet_NaN());
    } else {
      floats.assign(count, std::numeric_limits<float>::quiet_NaN());
    }
  }
  // In the range [least, least + 2).
  static Operand Drawn(const ValueSpec& spec, uint64_t seed, float least = -1) {
    Operand operand(spec);
    tensor::RandomStream stream({.seed = seed});
    for (float& v : operand.floats)
      v = least + 2 * static_cast<float>(tensor::ToUniform(stream.Next()));
    return operand;
  }
  void* data() {
    if (spec.dtype == DType::kU8) return places.data();
    if (spec.dtype == DType::kF64) return doubles.data();
    return floats.data();
  }
};

// The node's results. `first_in_place`: the first one over the first operand.
std::vector<Operand> ResultsOf(std::string_view op, const Attributes& attributes,
                               std::vector<Operand> inputs, const std::vector<ValueSpec>& made,
                               Selection selection = Selection::kFastest,
                               bool first_in_place = false) {
  std::vector<ValueSpec> in;
  std::vector<const void*> read;
  for (Operand& input : inputs) {
    in.push_back(input.spec);
    read.push_back(input.data());
  }
  const auto primitive = Prepare({op, attributes, in, made}, selection);
  EXPECT_NE(primitive, nullptr) << op;
  std::vector<Operand> outputs(made.begin(), made.end());
  std::vector<void*> written;
  for (Operand& output : outputs) written.push_back(output.data());
  if (first_in_place) {
    EXPECT_TRUE(primitive->MayOverwrite(0, 0));
    written[0] = inputs[0].data();
  }
  std::vector<double> scratch(primitive->scratch_bytes() / sizeof(double) + 8);
  primitive->Run({read.data(), written.data(), scratch.data(), nullptr});
  if (first_in_place) outputs[0].floats = inputs[0].floats;
  return outputs;
}

class NormalisationPoolingTest : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
      GTEST_SKIP() << "this processor lacks AVX2 or FMA";
  }

  static Attributes Pooling() {
    const std::vector<int64_t> two{2, 2}, none{0, 0};
    return {{"window", two}, {"stride", two}, {"padding", none}};
  }
  static Attributes Norm(bool relu = false) { return {{"epsilon", 1e-5}, {"relu", int64_t{relu}}}; }
  ValueSpec image() const { return {GetParam(), DType::kF32}; }
  ValueSpec pooled() const {
    const Shape& x = GetParam();
    return {{x.dim(0), x.dim(1), x.dim(2) / 2, x.dim(3) / 2}, DType::kF32};
  }
  ValueSpec channels() const { return {{GetParam().dim(1)}, DType::kF32}; }
  ValueSpec places() const { return {{pooled().shape.elements()}, DType::kU8}; }

  std::vector<Operand> Operands(const std::vector<float>& x) const {
    std::vector<Operand> in{Operand(image()), Operand::Drawn(channels(), 4),
                            Operand::Drawn(channels(), 5)};
    in[0].floats = x;
    return in;
  }
  std::vector<float> x() const { return Operand::Drawn(image(), 3).floats; }

  // y, mean, variance and places.
  std::vector<Operand> AtOnce(const std::vector<float>& x, bool relu) const {
    const std::vector<ValueSpec> out{pooled(), channels(), channels(), places()};
    const Attributes attributes = WithPooling(Norm(relu), Pooling());
    std::vector<ValueSpec> in;
    for (const Operand& operand : Operands(x)) in.push_back(operand.spec);
    EXPECT_TRUE(TakesVectors({"batch_norm_max_pool2d", attributes, in, out}));
    return ResultsOf("batch_norm_max_pool2d", attributes, Operands(x), out);
  }
  std::vector<Operand> AfterOneAnother(const std::vector<float>& x, bool relu) const {
    const auto normalised =
        ResultsOf("batch_norm", Norm(relu), Operands(x), {image(), channels(), channels()});
    const auto made =
        ResultsOf("max_pool2d_taps", Pooling(), {normalised[0]}, {pooled(), places()});
    return {made[0], normalised[1], normalised[2], made[1]};
  }

  // What the gradient reads: x, gamma, mean, variance, dy and places.
  std::vector<Operand> GradientOperands() const {
    std::vector<Operand> made = AtOnce(x(), false), in = Operands(x());
    return {in[0], in[1], made[1], made[2], Operand::Drawn(pooled(), 6), made[3]};
  }
  std::vector<Operand> Gradient(bool in_place = false) const {
    const std::vector<ValueSpec> out{image(), channels(), channels()};
    return ResultsOf("batch_norm_max_pool2d_grad", WithPooling(Norm(), Pooling()),
                     GradientOperands(), out, Selection::kFastest, in_place);
  }
};

// NaN is what it is.
void ExpectSame(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_EQ(a[i], b[i]) << "at " << i;
  }
}
void ExpectSame(const std::vector<Operand>& a, const std::vector<Operand>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    SCOPED_TRACE(fmt::format("result {}", i));
    ExpectSame(a[i].floats, b[i].floats);
    ASSERT_EQ(a[i].places, b[i].places);
  }
}

TEST_P(NormalisationPoolingTest, MakesTheBitsOfBothOpsOneAfterAnother) {
  for (const bool relu : {false, true}) ExpectSame(AtOnce(x(), relu), AfterOneAnother(x(), relu));
}

TEST_P(NormalisationPoolingTest, TakesTheFirstOfEqualsAndLosesNothingThatIsNoNumber) {
  std::vector<float> image(x().size(), 0.5F);
  ExpectSame(AtOnce(image, true), AfterOneAnother(image, true));
  image[image.size() / 2] = std::numeric_limits<float>::quiet_NaN();
  image[image.size() / 3] = std::numeric_limits<float>::infinity();
  ExpectSame(AtOnce(image, true), AfterOneAnother(image, true));
}

TEST_P(NormalisationPoolingTest, TheGradientAgreesWithTheReferenceInDouble) {
  const auto exact = [](const ValueSpec& spec) { return ValueSpec{spec.shape, DType::kF64}; };
  std::vector<Operand> in;
  for (const Operand& operand : GradientOperands()) {
    if (operand.spec.dtype == DType::kU8) {
      in.push_back(operand);
    } else {
      in.emplace_back(exact(operand.spec))
          .doubles.assign(operand.floats.begin(), operand.floats.end());
    }
  }
  const auto expected =
      ResultsOf("batch_norm_max_pool2d_grad", WithPooling(Norm(), Pooling()), in,
                {exact(image()), exact(channels()), exact(channels())}, Selection::kReference);
  const auto made = Gradient();
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::vector<float>& values = made[i].floats;
    double largest = 1;
    for (const double v : expected[i].doubles) largest = std::max(largest, std::abs(v));
    for (size_t j = 0; j < values.size(); ++j)
      ASSERT_NEAR(values[j], expected[i].doubles[j], 2e-6 * largest)
          << "result " << i << " at " << j;
  }
}

TEST_P(NormalisationPoolingTest, AGradientInTheImagesPlaceHasTheBitsOfOneInItsOwn) {
  ExpectSame(Gradient(/*in_place=*/true), Gradient());
}

// LeNet's, with rows of eight and six windows, and of seven; of four, an even and an odd number of
// rows; of one, two and five.
INSTANTIATE_TEST_SUITE_P(Shapes, NormalisationPoolingTest,
                         ::testing::Values(Shape{3, 20, 28, 28}, Shape{3, 5, 14, 14},
                                           Shape{2, 3, 4, 8}, Shape{2, 3, 6, 24}, Shape{4, 2, 8, 2},
                                           Shape{2, 2, 4, 4}, Shape{2, 3, 2, 10}),
                         [](const ::testing::TestParamInfo<Shape>& info) {
                           return fmt::format("{}x{}x{}", info.param.dim(1), info.param.dim(2),
                                              info.param.dim(3));
                         });

}  // namespace
}  // namespace ringmaster::kernels::vector
