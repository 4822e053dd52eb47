// Batch norm over images in blocks: eight channels or sixteen at a time, in memory of its own or in
// an operand's place, all with the same bits.
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
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

// A node of which some operands are images, all of one shape.
struct NormNode {
  std::string_view op;
  bool relu;
  std::vector<bool> inputs, outputs;  // which are images; the others are of the channels
};

// (x, gamma, beta[, addend]), (x, gamma, beta, mean, variance, addend), and gradients.
const std::vector<NormNode> kNodes = {
    {"batch_norm", false, {true, false, false}, {true, false, false}},
    {"batch_norm", true, {true, false, false, true}, {true, false, false}},
    {"batch_norm_again", true, {true, false, false, false, false, true}, {true}},
    {"batch_norm_grad", false, {true, false, false, false, true}, {true, false, false}},
    {"batch_norm_grad", true, {true, false, false, false, true, false}, {true, false, false}},
    {"batch_norm_add_relu_grad",
     false,
     {true, false, false, false, true, true, true},
     {true, false, false, true}},
};

// A bias's gradient, which is walked over as the statistics are.
const NormNode kSums = {"sum_to", false, {true}, {false}};

class NormalisationBlocksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
      GTEST_SKIP() << "this processor lacks AVX2 or FMA";
  }

  // All outputs, images in rows, of operands from a fixed seed; with `in_place` the first is
  // written over x.
  static std::vector<std::vector<float>> Run(const NormNode& node, const Shape& image,
                                             Layout layout, bool in_place = false) {
    const int64_t c = image.dim(1);
    const Shape channels = node.op == kSums.op ? Shape{c, 1, 1} : Shape{c};
    const auto specs_of = [&](const std::vector<bool>& images) {
      std::vector<ValueSpec> specs;
      for (const bool is_image : images)
        specs.push_back(is_image ? ValueSpec{image, DType::kF32, layout}
                                 : ValueSpec{channels, DType::kF32});
      return specs;
    };
    const auto inputs = specs_of(node.inputs), outputs = specs_of(node.outputs);
    const Attributes attributes{{"epsilon", 1e-5}, {"relu", int64_t{node.relu}}};
    const auto primitive = Prepare({node.op, attributes, inputs, outputs}, Selection::kFastest);
    EXPECT_NE(primitive, nullptr);
    EXPECT_EQ(primitive->name(), "vector/avx2");
    std::vector<device::Buffer> memory;
    std::vector<const void*> in;
    std::vector<void*> out;
    tensor::RandomStream stream({.seed = 7});
    for (const ValueSpec& spec : inputs) {
      std::vector<float> values(static_cast<size_t>(spec.shape.elements()));
      // Above zero where they may be variances.
      for (float& v : values)
        v = spec.shape.rank() == 4 ? 2 * tensor::ToUniform(stream.Next()) - 1
                                   : tensor::ToUniform(stream.Next()) + 0.1F;
      if (spec.shape.rank() == 4) values = Relaid(values, spec.shape, layout, true);
      std::memcpy(memory.emplace_back(spec.bytes()).data(), values.data(), spec.bytes());
      in.push_back(memory.back().data());
    }
    for (const ValueSpec& spec : outputs) out.push_back(memory.emplace_back(spec.bytes()).data());
    if (in_place) out[0] = memory[0].data();
    primitive->Run({in.data(), out.data(), nullptr, nullptr});
    std::vector<std::vector<float>> results;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto* values = static_cast<const float*>(out[i]);
      results.emplace_back(values, values + outputs[i].shape.elements());
      if (outputs[i].shape.rank() == 4)
        results.back() = Relaid(results.back(), image, layout, false);
    }
    return results;
  }
};

TEST_F(NormalisationBlocksTest, SixteenChannelsAtATimeHaveTheBitsOfEight) {
  for (const NormNode& node : kNodes) {
    const Shape image{3, 32, 5, 7};
    EXPECT_EQ(Run(node, image, Layout::kBlocks8), Run(node, image, Layout::kBlocks16))
        << node.op << (node.relu ? " with ReLU" : "");
  }
}

TEST_F(NormalisationBlocksTest, SumsOfSixteenChannelsAtATimeHaveTheBitsOfEight) {
  const Shape image{3, 32, 5, 7};
  EXPECT_EQ(Run(kSums, image, Layout::kBlocks8), Run(kSums, image, Layout::kBlocks16));
}

TEST_F(NormalisationBlocksTest, AResultInTheOperandsPlaceHasTheBitsOfOneInItsOwn) {
  for (const NormNode& node : kNodes) {
    for (const Layout layout : {Layout::kBlocks8, Layout::kBlocks16}) {
      const Shape image{2, 48, 3, 5};
      EXPECT_EQ(Run(node, image, layout), Run(node, image, layout, /*in_place=*/true)) << node.op;
    }
  }
}

}  // namespace
}  // namespace ringmaster::kernels::vector
