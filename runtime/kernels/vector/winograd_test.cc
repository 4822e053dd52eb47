#include "runtime/kernels/vector/winograd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/device/vectors.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/convolution_nodes.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/tensor/random.h"

namespace ringmaster::kernels::vector {
namespace {

using tensor::DType;
using tensor::ValueSpec;

class WinogradTest : public ConvolutionTest {};

// How far results may be from exact ones, as a part of the largest.
double ToleranceOf(const Convolution& c) {
  return c.kernel == 3 ? 2e-6 : 8e-6;
}

TEST_P(WinogradTest, AgreesWithTheReferenceInDoubleWithAnyVectorsAndToTheSameBits) {
  const bool has_wide = device::MayUse(device::Vectors::kAvx512);
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
      ASSERT_NEAR(narrow[i], expected[i], ToleranceOf(GetParam()) * largest)
          << node.op << " at " << i;
    ASSERT_EQ(UseWideTiles(true), has_wide);
    if (has_wide) {
      const auto wide = node.Make(DType::kF32, Selection::kFastest);
      EXPECT_EQ(node.Run<float>(*wide), narrow) << node.op;
    }
  }
}

// Results that fill their tiles and that end within one, images that tiles see all of and that are
// padded, panels that are full and that are not, of one sample's tiles and of several's, channels
// that fill a panel and that do not, and batches whose last group has fewer samples.
INSTANTIATE_TEST_SUITE_P(
    Shapes, WinogradTest,
    ::testing::Values(Convolution{64, 20, 50, 12, 12, 5, 0},  // LeNet's
                      Convolution{14, 37, 8, 12, 12, 3, 1},   // the gradient by x in three steps
                      Convolution{19, 20, 50, 12, 12, 5, 0},  // a group of three samples
                      Convolution{9, 9, 17, 13, 10, 5, 0},    // ends within tiles
                      Convolution{18, 11, 9, 8, 7, 5, 2},     // images smaller than two tiles
                      Convolution{2, 10, 33, 12, 22, 5, 1},   // a panel lacks a tile
                      Convolution{1, 8, 16, 16, 16, 5, 2},    // one sample
                      Convolution{5, 8, 8, 13, 15, 5, 4},     // all padding that weights see
                      Convolution{2, 20, 50, 14, 14, 3, 1},   // LeNet's with batch norm
                      Convolution{1, 8, 8, 16, 16, 3, 1},     // one panel, filled
                      Convolution{3, 9, 17, 15, 13, 3, 1},    // ends within tiles
                      Convolution{17, 8, 16, 13, 27, 3, 0},   // four panels of three samples
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
      {3, 20, 50, 12, 12, 5, 0},            // in few samples
      {2, 64, 256, 14, 14, 3, 1},           // large weights
  };
  for (const Convolution& c : others) {
    for (const Node& node : NodesOf(c)) {
      EXPECT_NE(node.Make(DType::kF32, Selection::kFastest)->name(), "vector/winograd")
          << node.op << " of " << ::testing::PrintToString(c);
    }
  }
}

// Groups are of four samples and of eight here, and threads that are many make smaller ones.
TEST_F(WinogradTest, GivesASampleTheSameBitsInGroupsOfAnySize) {
  const Convolution many{16, 20, 50, 12, 12, 5, 0}, few{8, 20, 50, 12, 12, 5, 0};
  tensor::RandomStream stream({.seed = 7});
  const auto draw = [&](const tensor::Shape& shape) {
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (float& value : values) value = 2 * tensor::ToUniform(stream.Next()) - 1;
    return values;
  };
  const std::vector<float> x = draw(many.x()), dy = draw(many.y()), weight = draw(many.weight());
  const auto run = [&](const Convolution& c, bool forward) {
    const ValueSpec image{c.x(), DType::kF32}, result{c.y(), DType::kF32},
        specs[] = {forward ? image : result, {c.weight(), DType::kF32}},
        out = forward ? result : image;
    const auto primitive =
        Prepare({forward ? "conv2d" : "conv2d_grad_input", c.attributes(), specs, {&out, 1}},
                Selection::kFastest);
    EXPECT_EQ(primitive->name(), "vector/winograd");
    std::vector<float> made(static_cast<size_t>(out.shape.elements())),
        scratch(primitive->scratch_bytes() / sizeof(float));
    const void* inputs[] = {forward ? x.data() : dy.data(), weight.data()};
    void* outputs[] = {made.data()};
    primitive->Run({inputs, outputs, scratch.data(), nullptr});
    return made;
  };
  for (const bool forward : {true, false}) {
    const std::vector<float> whole = run(many, forward), part = run(few, forward);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin()));
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
