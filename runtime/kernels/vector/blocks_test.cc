// Images in blocks of channels: what is made of each element alone, dropout, whose numbers are
// counted in rows, and adaptive pooling have the bits that they have in rows.
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/convolution_nodes.h"

namespace ringmaster::kernels::vector {
namespace {

using tensor::DType;
using tensor::Layout;
using tensor::Shape;

Node ImageNode(const std::string& op, const std::vector<Shape>& images, const Shape& made,
               const Attributes& attributes = {}) {
  return {op, attributes, images, made, images.size(), /*makes_image=*/true};
}

class BlocksTest : public ::testing::TestWithParam<Node> {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
      GTEST_SKIP() << "this processor lacks AVX2 or FMA";
  }

  // The result's bits, in rows.
  static std::vector<uint32_t> Run(Layout layout, bool in_place = false) {
    const auto primitive = GetParam().Make(DType::kF32, Selection::kFastest, layout);
    if (primitive == nullptr) {
      ADD_FAILURE() << "no kernel";
      return {};
    }
    EXPECT_NE(primitive->name(), "reference");
    const std::vector<uint64_t> positions = {4, 9, 17};
    const RunContext context{.seed = 3, .sample_positions = positions};
    std::vector<uint32_t> bits;
    for (const float made : GetParam().Run<float>(*primitive, layout, &context, in_place))
      bits.push_back(std::bit_cast<uint32_t>(made));
    return bits;
  }
};

TEST_P(BlocksTest, HaveTheBitsOfRows) {
  const std::vector<uint32_t> rows = Run(Layout::kRowMajor);
  EXPECT_EQ(Run(Layout::kBlocks8), rows);
  EXPECT_EQ(Run(Layout::kBlocks16), rows);
}

std::vector<Node> Elementwise() {
  const Shape image{3, 32, 5, 7};
  std::vector<Node> nodes;
  for (const char* op : {"exact_gelu", "gelu", "relu", "sigmoid", "silu", "tanh"}) {
    nodes.push_back(ImageNode(op, {image}, image));
    nodes.push_back(ImageNode(std::string(op) + "_grad", {image, image}, image));
  }
  for (const char* op : {"add", "divide", "multiply", "subtract"})
    nodes.push_back(ImageNode(op, {image, image}, image));
  nodes.push_back(ImageNode("scale", {image}, image, {{"factor", -1.75}}));
  return nodes;
}

INSTANTIATE_TEST_SUITE_P(Elementwise, BlocksTest, ::testing::ValuesIn(Elementwise()));

// Planes of which each begins at another number of a block of four, of less than eight pixels, and
// of more than are drawn at once.
std::vector<Node> Dropouts() {
  std::vector<Node> nodes;
  for (const Shape& image : {Shape{3, 32, 5, 7}, Shape{1, 16, 1, 2}, Shape{2, 16, 24, 43},
                             Shape{1, 48, 32, 32}, Shape{2, 16, 3, 1}})
    nodes.push_back(
        ImageNode("dropout", {image}, image, {{"rate", 0.4}, {"random_op", int64_t{5}}}));
  return nodes;
}

INSTANTIATE_TEST_SUITE_P(Dropout, BlocksTest, ::testing::ValuesIn(Dropouts()));

std::vector<Node> Poolings() {
  const std::vector<std::pair<Shape, Shape>> sizes = {{{2, 32, 7, 11}, {2, 32, 3, 4}},
                                                      {{2, 16, 7, 19}, {2, 16, 3, 1}},
                                                      {{1, 16, 3, 9}, {1, 16, 8, 20}},
                                                      {{3, 48, 9, 10}, {3, 48, 4, 4}}};
  std::vector<Node> nodes;
  for (const auto& [image, means] : sizes) {
    nodes.push_back(ImageNode("adaptive_avg_pool2d", {image}, means));
    nodes.push_back(ImageNode("adaptive_avg_pool2d_grad", {means}, image));
    nodes.push_back(ImageNode("adaptive_max_pool2d", {image}, means));
    nodes.push_back(ImageNode("adaptive_max_pool2d_grad", {image, means}, image));
  }
  return nodes;
}

INSTANTIATE_TEST_SUITE_P(AdaptivePooling, BlocksTest, ::testing::ValuesIn(Poolings()));

using InPlaceBlocksTest = BlocksTest;

TEST_P(InPlaceBlocksTest, DropTheSameInTheImagesPlace) {
  for (const Layout layout : {Layout::kRowMajor, Layout::kBlocks8, Layout::kBlocks16})
    EXPECT_EQ(Run(layout, /*in_place=*/true), Run(layout));
}

INSTANTIATE_TEST_SUITE_P(Dropout, InPlaceBlocksTest, ::testing::ValuesIn(Dropouts()));

}  // namespace
}  // namespace ringmaster::kernels::vector
