// Convolutions and their gradients as nodes, run on numbers of a fixed seed: for the tests of this
// folder's kernels.
#ifndef RINGMASTER_RUNTIME_KERNELS_VECTOR_CONVOLUTION_NODES_H_
#define RINGMASTER_RUNTIME_KERNELS_VECTOR_CONVOLUTION_NODES_H_

#include <algorithm>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/memory.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/vector/product.h"
#include "runtime/tensor/random.h"

namespace ringmaster::kernels::vector {

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

inline void PrintTo(const Convolution& c, std::ostream* os) {
  *os << c.x().ToString() << " by " << c.weight().ToString() << ", padding " << c.padding;
}

// Images in rows or in blocks of channels, from the other to the one.
template <typename Float>
std::vector<Float> Relaid(const std::vector<Float>& values, const tensor::Shape& shape,
                          tensor::Layout layout, bool to_blocks) {
  if (layout == tensor::Layout::kRowMajor) return values;
  const int64_t block = static_cast<int64_t>(layout), channels = shape.dim(1),
                plane = shape.Product(2, 4);
  std::vector<Float> to(values.size());
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const int64_t n = i / plane / channels, c = i / plane % channels, pixel = i % plane;
    const int64_t at = ((n * channels + c / block * block) * plane) + pixel * block + c % block;
    const auto row = static_cast<size_t>(i), in_blocks = static_cast<size_t>(at);
    (to_blocks ? to[in_blocks] = values[row] : to[row] = values[in_blocks]);
  }
  return to;
}

// From `least` to 1, of that seed.
inline std::vector<float> Drawn(int64_t count, uint64_t seed, float least = -1) {
  std::vector<float> values(static_cast<size_t>(count));
  tensor::RandomStream stream({.seed = seed});
  for (float& v : values)
    v = least + (1 - least) * static_cast<float>(tensor::ToUniform(stream.Next()));
  return values;
}

// Runs a primitive whose memory was no number before.
inline void RunOnce(Primitive& primitive, const std::vector<const void*>& in,
                    const std::vector<void*>& out) {
  const device::Buffer scratch(primitive.scratch_bytes());
  std::fill_n(static_cast<char*>(scratch.data()), scratch.bytes(), '\xff');
  primitive.Run({in.data(), out.data(), scratch.data(), nullptr});
}

// A node of one output, with operands from a fixed seed.
struct Node {
  std::string op;
  Attributes attributes;
  std::vector<tensor::Shape> inputs;
  tensor::Shape output;
  size_t images;  // of the inputs, the first ones
  bool makes_image;

  std::unique_ptr<Primitive> Make(tensor::DType dtype, Selection selection,
                                  tensor::Layout layout = tensor::Layout::kRowMajor) const {
    std::vector<tensor::ValueSpec> in;
    for (const tensor::Shape& shape : inputs)
      in.push_back({shape, dtype, in.size() < images ? layout : tensor::Layout::kRowMajor});
    const tensor::ValueSpec out{output, dtype, makes_image ? layout : tensor::Layout::kRowMajor};
    return Prepare({op, attributes, in, {&out, 1}}, selection);
  }

  // What comes out, in rows, of a primitive for that layout, where all memory was no number before;
  // with `in_place` it is written over the first operand.
  template <typename Float>
  std::vector<Float> Run(Primitive& primitive, tensor::Layout layout = tensor::Layout::kRowMajor,
                         const RunContext* context = nullptr, bool in_place = false) const {
    tensor::RandomStream stream({.seed = 5});
    std::vector<std::vector<Float>> values;
    std::vector<const void*> pointers;
    for (const tensor::Shape& shape : inputs) {
      auto& v = values.emplace_back(static_cast<size_t>(shape.elements()));
      for (Float& one : v) one = 2 * tensor::ToUniform(stream.Next()) - 1;
      if (values.size() <= images) v = Relaid(v, shape, layout, true);
    }
    for (const auto& v : values) pointers.push_back(v.data());
    constexpr Float kNan = std::numeric_limits<Float>::quiet_NaN();
    std::vector<Float> y(static_cast<size_t>(output.elements()), kNan);
    std::vector<float> scratch(primitive.scratch_bytes() / sizeof(float) + 16,
                               std::numeric_limits<float>::quiet_NaN());
    void* place = scratch.data();
    size_t space = scratch.size() * sizeof(float);
    std::align(64, primitive.scratch_bytes(), place, space);
    std::vector<Float>& made = in_place ? values.front() : y;
    void* outputs[] = {made.data()};
    primitive.Run({pointers.data(), outputs, place, context});
    return makes_image ? Relaid(made, output, layout, false) : made;
  }
};

inline void PrintTo(const Node& node, std::ostream* os) {
  *os << node.op << " to " << node.output.ToString();
}

inline std::vector<Node> NodesOf(const Convolution& c) {
  return {
      {"conv2d", c.attributes(), {c.x(), c.weight(), {c.out}}, c.y(), 1, true},
      {"conv2d", c.attributes(true), {c.x(), c.weight()}, c.y(), 1, true},
      {"conv2d_grad_input", c.attributes(), {c.y(), c.weight()}, c.x(), 1, true},
      {"conv2d_grad_weight", c.attributes(), {c.x(), c.y()}, c.weight(), 2, false},
  };
}

// Tests of kernels in vectors, where the processor has them; narrow tiles are for one test only.
class ConvolutionTest : public ::testing::TestWithParam<Convolution> {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
      GTEST_SKIP() << "this processor lacks AVX2 or FMA";
  }
  ~ConvolutionTest() override { UseWideTiles(true); }
};

}  // namespace ringmaster::kernels::vector

#endif  // RINGMASTER_RUNTIME_KERNELS_VECTOR_CONVOLUTION_NODES_H_
