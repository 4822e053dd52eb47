// Images in blocks of channels: what is made of each element alone, dropout, whose numbers are
// counted in rows, and adaptive pooling have the bits that they have in rows.
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/memory.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/convolution_nodes.h"
#include "runtime/tensor/random.h"

namespace ringmaster::kernels::vector {
namespace {

using tensor::DType;
using tensor::Layout;
using tensor::Shape;
using tensor::ValueSpec;

struct ImageNode {
  std::string op;
  std::vector<Shape> inputs;
  Shape output;
  Attributes attributes = {};
};

void PrintTo(const ImageNode& node, std::ostream* os) {
  *os << node.op << " to " << node.output.ToString();
}

class BlocksTest : public ::testing::TestWithParam<ImageNode> {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
      GTEST_SKIP() << "this processor lacks AVX2 or FMA";
  }

  // The result in rows, of operands from a fixed seed; with `in_place` written over the first.
  static std::vector<float> Run(const ImageNode& node, Layout layout, bool in_place = false) {
    std::vector<ValueSpec> inputs;
    for (const Shape& shape : node.inputs) inputs.push_back({shape, DType::kF32, layout});
    const ValueSpec output{node.output, DType::kF32, layout};
    const auto primitive =
        Prepare({node.op, node.attributes, inputs, {&output, 1}}, Selection::kFastest);
    if (primitive == nullptr) {
      ADD_FAILURE() << "no kernel";
      return {};
    }
    EXPECT_NE(primitive->name(), "reference");
    std::vector<device::Buffer> memory;
    std::vector<const void*> in;
    tensor::RandomStream stream({.seed = 7});
    for (const ValueSpec& spec : inputs) {
      std::vector<float> values(static_cast<size_t>(spec.shape.elements()));
      for (float& v : values) v = 4 * tensor::ToUniform(stream.Next()) - 2;
      values = Relaid(values, spec.shape, layout, true);
      std::memcpy(memory.emplace_back(spec.bytes()).data(), values.data(), spec.bytes());
      in.push_back(memory.back().data());
    }
    const device::Buffer scratch(primitive->scratch_bytes());
    void* out = in_place ? memory[0].data() : memory.emplace_back(output.bytes()).data();
    const std::vector<uint64_t> positions = {4, 9, 17};
    const RunContext context{.seed = 3, .sample_positions = positions};
    primitive->Run({in.data(), &out, scratch.data(), &context});
    const auto* values = static_cast<const float*>(out);
    return Relaid(std::vector<float>(values, values + node.output.elements()), node.output, layout,
                  false);
  }
};

TEST_P(BlocksTest, HaveTheBitsOfRows) {
  const std::vector<float> rows = Run(GetParam(), Layout::kRowMajor);
  EXPECT_EQ(Run(GetParam(), Layout::kBlocks8), rows);
  EXPECT_EQ(Run(GetParam(), Layout::kBlocks16), rows);
}

std::vector<ImageNode> Elementwise() {
  const Shape image{3, 32, 5, 7};
  std::vector<ImageNode> nodes;
  for (const char* op : {"exact_gelu", "gelu", "relu", "sigmoid", "tanh"}) {
    nodes.push_back({op, {image}, image});
    nodes.push_back({std::string(op) + "_grad", {image, image}, image});
  }
  for (const char* op : {"add", "divide", "multiply", "subtract"})
    nodes.push_back({op, {image, image}, image});
  nodes.push_back({"scale", {image}, image, {{"factor", -1.75}}});
  return nodes;
}

INSTANTIATE_TEST_SUITE_P(Elementwise, BlocksTest, ::testing::ValuesIn(Elementwise()));

// Planes of which each begins at another number of a block of four, of less than eight pixels, and
// of more than are drawn at once.
std::vector<ImageNode> Dropouts() {
  std::vector<ImageNode> nodes;
  for (const Shape& image : {Shape{3, 32, 5, 7}, Shape{1, 16, 1, 2}, Shape{2, 16, 24, 43},
                             Shape{1, 48, 32, 32}, Shape{2, 16, 3, 1}})
    nodes.push_back({"dropout", {image}, image, {{"rate", 0.4}, {"random_op", int64_t{5}}}});
  return nodes;
}

INSTANTIATE_TEST_SUITE_P(Dropout, BlocksTest, ::testing::ValuesIn(Dropouts()));

std::vector<ImageNode> Poolings() {
  const std::vector<std::pair<Shape, Shape>> sizes = {{{2, 32, 7, 11}, {2, 32, 3, 4}},
                                                      {{2, 16, 7, 19}, {2, 16, 3, 1}},
                                                      {{1, 16, 3, 9}, {1, 16, 8, 20}},
                                                      {{3, 48, 9, 10}, {3, 48, 4, 4}}};
  std::vector<ImageNode> nodes;
  for (const auto& [image, means] : sizes) {
    nodes.push_back({"adaptive_avg_pool2d", {image}, means});
    nodes.push_back({"adaptive_avg_pool2d_grad", {means}, image});
  }
  return nodes;
}

INSTANTIATE_TEST_SUITE_P(AdaptivePooling, BlocksTest, ::testing::ValuesIn(Poolings()));

using InPlaceBlocksTest = BlocksTest;

TEST_P(InPlaceBlocksTest, DropTheSameInTheImagesPlace) {
  for (const Layout layout : {Layout::kRowMajor, Layout::kBlocks8, Layout::kBlocks16})
    EXPECT_EQ(Run(GetParam(), layout, /*in_place=*/true), Run(GetParam(), layout));
}

INSTANTIATE_TEST_SUITE_P(Dropout, InPlaceBlocksTest, ::testing::ValuesIn(Dropouts()));

}  // namespace
}  // namespace ringmaster::kernels::vector
