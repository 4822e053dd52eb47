#include "runtime/kernels/vector/product.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/vectors.h"
#include "runtime/tensor/random.h"

namespace ringmaster::kernels::vector {
namespace {

constexpr uint64_t kSeed = 7;

class ProductTest : public ::testing::Test {
 protected:
  ~ProductTest() override { UseWideTiles(true); }

  std::vector<float> Draw(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = 2 * tensor::ToUniform(stream_.Next()) - 1;
    return values;
  }
  int64_t Below(uint32_t bound) { return stream_.Below(bound) + 1; }

  tensor::RandomStream stream_{{.seed = kSeed}};
};

// Matrices of all sizes, so that tiles of every height come about, and panels that are not whole.
struct Sample {
  Product product;
  std::vector<float> a, b, bias;

  std::vector<float> Result() const {
    std::vector<float> y(static_cast<size_t>(product.m * product.n));
    std::vector<float> scratch(product.scratch_bytes() / sizeof(float));
    product.RunAlone(a.data(), b.data(), bias.data(), y.data(), scratch.data());
    return y;
  }

  double Exact(int64_t row, int64_t column) const {
    double sum = bias[static_cast<size_t>(column)];
    for (int64_t i = 0; i < product.k; ++i) {
      sum +=
          static_cast<double>(a[static_cast<size_t>(row * product.a.row + i * product.a.column)]) *
          b[static_cast<size_t>(i * product.b.row + column * product.b.column)];
    }
    return sum;
  }
};

TEST_F(ProductTest, OfNoRowsIsNothing) {
  const Product product{.m = 0, .k = 3, .n = 20, .a = {3, 1}, .b = {20, 1}};
  const std::vector<float> b = Draw(60);
  std::vector<float> scratch(product.scratch_bytes() / sizeof(float));
  for (const bool wide : {false, true}) {
    UseWideTiles(wide);
    product.RunAlone(nullptr, b.data(), nullptr, nullptr, scratch.data());
  }
}

TEST_F(ProductTest, IsTheSumOverTheInnerAxisWhateverTheTilesAndToTheSameBits) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    GTEST_SKIP() << "this processor runs no such products";
  const bool has_wide = device::MayUse(device::Vectors::kAvx512);
  for (int round = 0; round < 200; ++round) {
    const int64_t m = Below(45), k = Below(40), n = Below(50);
    const bool a_turned = stream_.Below(2) == 1, b_turned = stream_.Below(2) == 1;
    const Sample sample{{.m = m,
                         .k = k,
                         .n = n,
                         .a = a_turned ? Strides{1, m} : Strides{k, 1},
                         .b = b_turned ? Strides{1, k} : Strides{n, 1}},
                        Draw(m * k),
                        Draw(k * n),
                        Draw(n)};
    ASSERT_TRUE(UseWideTiles(false));
    const std::vector<float> result = sample.Result();
    for (int64_t i = 0; i < m * n; ++i) {
      ASSERT_NEAR(result[static_cast<size_t>(i)], sample.Exact(i / n, i % n), 1e-5)
          << "seed " << kSeed << ", round " << round;
    }
    ASSERT_EQ(UseWideTiles(true), has_wide);
    if (has_wide) {
      ASSERT_EQ(sample.Result(), result) << "seed " << kSeed << ", round " << round;
    }
  }
}

// To 2^24 no single one can be added.
TEST_F(ProductTest, AddsUpItsProductsBeforeWhatIsThere) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    GTEST_SKIP() << "this processor runs no such products";
  constexpr int64_t kInner = 8;
  constexpr float kLarge = 1 << 24;
  const std::vector<float> a(kInner, 1), b(kInner * 2 * kTileColumns, 1);
  const Product product{.m = 1, .k = kInner, .a = {kInner, 1}};
  for (const bool wide : {false, true}) {
    UseWideTiles(wide);
    for (const int64_t panels : {1, 2}) {
      std::vector<float> y(static_cast<size_t>(panels * kTileColumns), kLarge);
      product.RunPacked(a.data(), b.data(), y.data(), panels * kTileColumns, true,
                        {panels, kInner * kTileColumns, kTileColumns});
      EXPECT_EQ(y, std::vector<float>(y.size(), kLarge + kInner)) << wide << ", " << panels;
    }
  }
}

}  // namespace
}  // namespace ringmaster::kernels::vector
