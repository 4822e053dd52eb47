// Max pooling over images in rows and in blocks: windows that leave the image, that share pixels
// and that tile it, ties and what is no number, beside the reference kernels over the same images
// in rows.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
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

struct Pooling {
  int64_t window, stride, padding;
  Shape image, result;
};

const std::vector<Pooling> kPoolings = {
    {2, 2, 0, {2, 16, 4, 6}, {2, 16, 2, 3}},     {2, 2, 0, {1, 32, 5, 7}, {1, 32, 2, 3}},
    {3, 2, 1, {2, 16, 7, 9}, {2, 16, 4, 5}},     {3, 1, 1, {1, 16, 4, 4}, {1, 16, 4, 4}},
    {2, 3, 0, {1, 16, 8, 8}, {1, 16, 3, 3}},     {3, 2, 1, {1, 16, 9, 41}, {1, 16, 5, 21}},
    {5, 1, 0, {1, 16, 6, 21}, {1, 16, 2, 17}},   {7, 7, 0, {2, 16, 7, 7}, {2, 16, 1, 1}},
    {16, 16, 0, {1, 16, 16, 32}, {1, 16, 1, 2}},  // a byte numbers the last of its places
};

class PoolingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
      GTEST_SKIP() << "this processor lacks AVX2 or FMA";
  }

  // Whole numbers, so that many are the largest of their window, and some that are none.
  static std::vector<float> Image(const Shape& shape) {
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    tensor::RandomStream stream({.seed = 11});
    for (float& v : values) {
      const uint64_t drawn = stream.Below(40);
      v = drawn == 0 ? std::numeric_limits<float>::quiet_NaN()
                     : static_cast<float>(drawn % 4) - 1.5F;
    }
    return values;
  }
  static std::vector<float> Gradient(const Shape& shape) {
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) + 1;
    return values;
  }

  static std::vector<float> Pooled(const Pooling& p, Layout layout, Selection selection,
                                   Layout of_result) {
    const std::vector<int64_t> window(2, p.window), stride(2, p.stride), padding(2, p.padding);
    const Attributes pool{{"window", window}, {"stride", stride}, {"padding", padding}};
    const ValueSpec image{p.image, DType::kF32, layout}, result{p.result, DType::kF32, of_result};
    const std::vector<float> x = Relaid(Image(p.image), p.image, layout, true);
    std::vector<float> y(static_cast<size_t>(p.result.elements()), 5);
    const auto primitive = Prepare({"max_pool2d", pool, {&image, 1}, {&result, 1}}, selection);
    EXPECT_EQ(primitive->name().starts_with("vector/"), selection == Selection::kFastest);
    const void* inputs[] = {x.data()};
    void* outputs[] = {y.data()};
    primitive->Run({inputs, outputs, nullptr, nullptr});
    return Relaid(y, p.result, of_result, false);
  }

  // The image's gradient as the pooling's taps have it, or as the image itself has.
  static std::vector<float> Run(const Pooling& p, Layout layout, Selection selection,
                                bool with_taps, std::vector<float>* pooled) {
    const std::vector<int64_t> window(2, p.window), stride(2, p.stride), padding(2, p.padding);
    const Attributes pool{{"window", window}, {"stride", stride}, {"padding", padding}};
    const ValueSpec image{p.image, DType::kF32, layout}, result{p.result, DType::kF32, layout},
        taps{{p.result.elements()}, DType::kU8};
    const std::vector<float> x = Relaid(Image(p.image), p.image, layout, true),
                             dy = Relaid(Gradient(p.result), p.result, layout, true);
    std::vector<float> y(dy.size()), dx(x.size(), 5);
    std::vector<uint8_t> places(dy.size());
    const auto run = [&](std::string_view op, const Attributes& attributes,
                         const std::vector<ValueSpec>& in, const std::vector<ValueSpec>& out,
                         const std::vector<const void*>& from, const std::vector<void*>& to) {
      const auto primitive = Prepare({op, attributes, in, out}, selection);
      ASSERT_NE(primitive, nullptr) << op;
      const bool is_ours = selection == Selection::kFastest;
      EXPECT_EQ(primitive->name().starts_with("vector/"), is_ours) << primitive->name();
      primitive->Run({from.data(), to.data(), nullptr, nullptr});
    };
    if (with_taps) {
      const std::vector<int64_t> shape{p.image.dim(0), p.image.dim(1), p.image.dim(2),
                                       p.image.dim(3)};
      run("max_pool2d_taps", pool, {image}, {result, taps}, {x.data()}, {y.data(), places.data()});
      run("max_pool2d_taps_grad", pool.With("shape", shape), {result, taps}, {image},
          {dy.data(), places.data()}, {dx.data()});
      *pooled = Relaid(y, p.result, layout, false);
    } else {
      run("max_pool2d_grad", pool, {image, result}, {image}, {x.data(), dy.data()}, {dx.data()});
    }
    return Relaid(dx, p.image, layout, false);
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

TEST_F(PoolingTest, ResultsAreTheReferencesInEachLayout) {
  for (const Pooling& p : kPoolings) {
    SCOPED_TRACE(::testing::Message()
                 << p.window << " by " << p.window << ", " << p.stride << " apart");
    const auto expected = Pooled(p, Layout::kRowMajor, Selection::kReference, Layout::kRowMajor);
    for (const Layout layout : {Layout::kRowMajor, Layout::kBlocks8, Layout::kBlocks16}) {
      ExpectSame(Pooled(p, layout, Selection::kFastest, layout), expected);
      if (p.result.Product(2, 4) == 1)  // one pixel lies alike everywhere
        ExpectSame(Pooled(p, layout, Selection::kFastest, Layout::kRowMajor), expected);
    }
  }
}

TEST_F(PoolingTest, ResultsWithTapsAndGradientsAreTheReferences) {
  for (const Pooling& p : kPoolings) {
    SCOPED_TRACE(::testing::Message()
                 << p.window << " by " << p.window << ", " << p.stride << " apart");
    std::vector<float> expected_y, y;
    const auto expected =
        Run(p, Layout::kRowMajor, Selection::kReference, /*with_taps=*/false, nullptr);
    ExpectSame(Run(p, Layout::kRowMajor, Selection::kReference, true, &expected_y), expected);
    for (const Layout layout : {Layout::kBlocks8, Layout::kBlocks16}) {
      ExpectSame(Run(p, layout, Selection::kFastest, /*with_taps=*/false, nullptr), expected);
      ExpectSame(Run(p, layout, Selection::kFastest, /*with_taps=*/true, &y), expected);
      ExpectSame(y, expected_y);
    }
  }
}

}  // namespace
}  // namespace ringmaster::kernels::vector
