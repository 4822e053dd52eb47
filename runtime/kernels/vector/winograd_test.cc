#include "runtime/kernels/vector/winograd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/tensor/random.h"

namespace ringmaster::kernels::vector {
namespace {

using tensor::DType;
using tensor::ValueSpec;

// A convolution of `in` channels of height x width to `out`.
struct Convolution {
  int64_t batch, in, out, height, width, kernel, padding;
  int64_t stride = 1, dilation = 1, groups = 1;

  Attributes attributes(bool relu = false) const {
    const auto twice = [](int64_t n) { return std::vector<int64_t>{n, n}; };
    return {{"stride", twice(stride)},
            {"padding", twice(padding)},
            {"dilation", twice(dilation)},
            {"groups", groups},
            {"relu", int64_t{relu}}};
  }
  int64_t Places(int64_t extent) const {
    return (extent + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
  }
  tensor::Shape x() const { return {batch, in, height, width}; }
  tensor::Shape weight() const { return {out, in / groups, kernel, kernel}; }
  tensor::Shape y() const { return {batch, out, Places(height), Places(width)}; }
};

void PrintTo(const Convolution& c, std::ostream* os) {
  *os << c.x().ToString() << " by " << c.weight().ToString() << ", padding " << c.padding;
}

// A node of one output, with operands from a fixed seed.
struct Node {
  std::string op;
  Attributes attributes;
  std::vector<tensor::Shape> inputs;
  tensor::Shape output;

  std::unique_ptr<Primitive> Make(DType dtype, Selection selection) const {
    std::vector<ValueSpec> in;
    for (const tensor::Shape& shape : inputs) in.push_back({shape, dtype});
    const ValueSpec out{output, dtype};
    return Prepare({op, attributes, in, {&out, 1}}, selection);
  }

  // What comes out where all memory was no number before.
  template <typename Float>
  std::vector<Float> Run(Primitive& primitive) const {
    tensor::RandomStream stream({.seed = 5});
    std::vector<std::vector<Float>> values;
    std::vector<const void*> pointers;
    for (const tensor::Shape& shape : inputs) {
      auto& v = values.emplace_back(static_cast<size_t>(shape.elements()));
      for (Float& one : v) one = 2 * tensor::ToUniform(stream.Next()) - 1;
    }
    for (const auto& v : values) pointers.push_back(v.data());
    constexpr Float kNan = std::numeric_limits<Float>::quiet_NaN();
    std::vector<Float> y(static_cast<size_t>(output.elements()), kNan);
    std::vector<float> scratch(primitive.scratch_bytes() / sizeof(float) + 16,
                               std::numeric_limits<float>::quiet_NaN());
    void* place = scratch.data();
    size_t space = scratch.size() * sizeof(float);
    std::align(64, primitive.scratch_bytes(), place, space);
    void* outputs[] = {y.data()};
    primitive.Run({pointers.data(), outputs, place, nullptr});
    return y;
  }
};

std::vector<Node> NodesOf(const Convolution& c) {
  return {
      {"conv2d", c.attributes(), {c.x(), c.weight(), {c.out}}, c.y()},
      {"conv2d", c.attributes(true), {c.x(), c.weight()}, c.y()},
      {"conv2d_grad_input", c.attributes(), {c.y(), c.weight()}, c.x()},
      {"conv2d_grad_weight", c.attributes(), {c.x(), c.y()}, c.weight()},
  };
}

class WinogradTest : public ::testing::TestWithParam<Convolution> {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
      GTEST_SKIP() << "this processor runs no such kernels";
  }
  ~WinogradTest() override { UseWideTiles(true); }
};

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
