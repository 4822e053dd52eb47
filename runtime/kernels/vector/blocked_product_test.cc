#include "runtime/kernels/vector/blocked_product.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/tensor/random.h"

namespace ringmaster::kernels::vector {
namespace {

constexpr uint64_t kSeed = 13;

class BlockedProductTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
      GTEST_SKIP() << "this processor runs no such products";
  }

  std::vector<float> Draw(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = 2 * tensor::ToUniform(stream_.Next()) - 1;
    return values;
  }
  int64_t Below(uint32_t bound) { return stream_.Below(bound) + 1; }
  Product Any(int64_t m, int64_t k, int64_t n) {
    const bool a_turned = stream_.Below(2) == 1, b_turned = stream_.Below(2) == 1;
    return {.m = m,
            .k = k,
            .n = n,
            .a = a_turned ? Strides{1, m} : Strides{k, 1},
            .b = b_turned ? Strides{1, k} : Strides{n, 1},
            .relu = stream_.Below(2) == 1};
  }

  tensor::RandomStream stream_{{.seed = kSeed}};
};

struct BlockedSample {
  Product product;
  std::vector<float> a, b, bias;  // bias may be empty

  // Where all memory was no number before. Behind the last element nothing may be written.
  std::vector<float> Result() const {
    constexpr float kStart = -7, kNan = std::numeric_limits<float>::quiet_NaN();
    const BlockedProduct blocked(product);
    std::vector<float> y(static_cast<size_t>(product.m * product.n) + 1, kNan);
    y.back() = kStart;
    std::vector<float> scratch(blocked.scratch_bytes() / sizeof(float) + 1, kNan);
    scratch.back() = kStart;
    blocked.Run(a.data(), b.data(), bias.empty() ? nullptr : bias.data(), y.data(), scratch.data());
    EXPECT_EQ(y.back(), kStart);
    EXPECT_EQ(scratch.back(), kStart);
    y.pop_back();
    return y;
  }

  // And, in `size`, the sum of what is added up without its signs.
  double Exact(int64_t row, int64_t column, double& size) const {
    double sum = bias.empty() ? 0 : bias[static_cast<size_t>(column)];
    size = std::abs(sum);
    for (int64_t i = 0; i < product.k; ++i) {
      const auto at_a = static_cast<size_t>(row * product.a.row + i * product.a.column),
                 at_b = static_cast<size_t>(i * product.b.row + column * product.b.column);
      const double term = static_cast<double>(a[at_a]) * b[at_b];
      sum += term;
      size += std::abs(term);
    }
    return product.relu && sum < 0 ? 0 : sum;
  }
};

// Of all sizes: tiles that are not whole, several blocks of rows, of columns and of the inner axis,
// and short inner axes, whose tiles come in another order.
TEST_F(BlockedProductTest, IsTheSumOverTheInnerAxisWhereverBlocksEnd) {
  for (int round = 0; round < 120; ++round) {
    const int64_t m = Below(round % 5 == 0 ? 300 : 40), k = Below(round % 7 == 0 ? 900 : 90),
                  n = Below(round % 11 == 0 ? 1200 : 70);
    const BlockedSample sample{Any(m, k, n), Draw(m * k), Draw(k * n),
                               round % 3 == 0 ? std::vector<float>() : Draw(n)};
    const std::vector<float> result = sample.Result();
    for (int64_t i = 0; i < m * n; ++i) {
      double size = 0;
      const double exact = sample.Exact(i / n, i % n, size);
      ASSERT_NEAR(result[static_cast<size_t>(i)], exact, size * 6e-8 * 30)
          << "seed " << kSeed << ", round " << round << ": " << m << " x " << k << " x " << n;
    }
  }
}

// So that a sample's result does not depend on the others of its batch.
TEST_F(BlockedProductTest, HasTheSameBitsInEveryRowWhateverIsMultipliedBesideIt) {
  constexpr int64_t kRows = 250, kInner = 600, kWidth = 40;
  BlockedSample all{Any(kRows, kInner, kWidth), {}, Draw(kInner * kWidth), Draw(kWidth)};
  all.product.a = {kInner, 1};
  all.a = Draw(kRows * kInner);
  const std::vector<float> together = all.Result();
  for (const int64_t row : {0, 5, 119, 120, 249}) {
    BlockedSample alone = all;
    alone.product.m = 1;
    alone.a.assign(all.a.begin() + row * kInner, all.a.begin() + (row + 1) * kInner);
    EXPECT_EQ(alone.Result(), std::vector<float>(together.begin() + row * kWidth,
                                                 together.begin() + (row + 1) * kWidth))
        << "row " << row;
  }
}

TEST_F(BlockedProductTest, KeepsWhatIsNoNumberWithAndWithoutARelu) {
  constexpr int64_t kSide = 20, kInner = 300;
  BlockedSample sample{Any(kSide, kInner, kSide), Draw(kSide * kInner), Draw(kInner * kSide), {}};
  sample.product.a = {kInner, 1};
  sample.a[3 * kInner + 7] = std::numeric_limits<float>::quiet_NaN();
  for (const bool relu : {false, true}) {
    sample.product.relu = relu;
    const std::vector<float> result = sample.Result();
    for (int64_t i = 0; i < kSide * kSide; ++i)
      EXPECT_EQ(std::isnan(result[static_cast<size_t>(i)]), i / kSide == 3) << "element " << i;
  }
}

}  // namespace
}  // namespace ringmaster::kernels::vector
