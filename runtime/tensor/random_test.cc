#include "runtime/tensor/random.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace ringmaster::tensor {
namespace {

using Words = std::array<uint32_t, 4>;

// From Random123's kat_vectors file, "philox4x32 10".
TEST(RandomTest, PhiloxGivesTheKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomTest, EachPartOfTheKeyChangesTheNumbers) {
  const RandomKey base{.seed = 1, .domain = RandomDomain::kDropout, .op = 2, .position = 3};
  std::set<Words> seen{RandomBlock(base, 0), RandomBlock(base, 1)};
  for (const RandomKey& key :
       {RandomKey{.seed = 1ull << 32 | 1, .op = 2, .position = 3},
        RandomKey{.seed = 1, .op = 3, .position = 3},
        RandomKey{.seed = 1, .op = 2, .position = 1ull << 32 | 3},
        RandomKey{.seed = 1, .domain = RandomDomain::kOrder, .op = 2, .position = 3}}) {
    EXPECT_TRUE(seen.insert(RandomBlock(key, 0)).second);
  }
}

TEST(RandomTest, AStreamDrawsTheBlocksInOrder) {
  const RandomKey key{.seed = 9};
  RandomStream stream(key);
  for (uint32_t block = 0; block < 3; ++block) {
    for (const uint32_t word : RandomBlock(key, block)) EXPECT_EQ(stream.Next(), word);
  }
}

TEST(RandomTest, BelowStaysBelowAndReachesEveryValue) {
  RandomStream stream({.seed = 5});
  std::set<uint32_t> seen;
  for (int i = 0; i < 200; ++i) {
    const uint32_t v = stream.Below(7);
    EXPECT_LT(v, 7u);
    seen.insert(v);
  }
  EXPECT_EQ(seen.size(), 7u);
}

TEST(RandomTest, UniformFillsTheIntervalEvenly) {
  Tensor t({10000}, DType::kF32);
  FillUniform(t, -2.0f, 4.0f, 42, "w");
  double sum = 0;
  for (const float v : t.span<float>()) {
    EXPECT_GE(v, -2.0f);
    EXPECT_LT(v, 4.0f);
    sum += v;
  }
  EXPECT_NEAR(sum / 10000, 1.0, 0.1);
}

TEST(RandomTest, UniformDrawsAreThoseOfAStreamInOrder) {
  Tensor t({20'001}, DType::kF32);  // not a multiple of a block
  FillUniform(t, 0, 1, 42, "w");
  RandomStream stream({.seed = 42, .domain = RandomDomain::kInitialiser, .op = StreamOf("w")});
  for (const float v : t.span<float>()) ASSERT_EQ(v, ToUniform(stream.Next()));
}

// The share of normal deviates below x.
double NormalShare(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}

// Kolmogorov and Smirnov: of 200,000 draws no share is off by more than 1.95 / sqrt(n) but once in
// a thousand times, and these draws are always the same.
TEST(RandomTest, NormalDrawsAreDistributedAsSuch) {
  constexpr int64_t kDraws = 200'000;
  Tensor t({kDraws}, DType::kF32);
  FillNormal(t, 0.02f, 42, "w");
  std::vector<float> sorted(t.span<float>().begin(), t.span<float>().end());
  std::ranges::sort(sorted);
  double worst = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const double share = static_cast<double>(i) / kDraws;
    worst = std::max(worst, std::abs(NormalShare(sorted[i] / 0.02) - share));
  }
  EXPECT_LT(worst, 1.95 / std::sqrt(static_cast<double>(kDraws)));
  EXPECT_GT(sorted.back(), 4 * 0.02f);
  EXPECT_LT(sorted.front(), -4 * 0.02f);
}

TEST(RandomTest, ADrawIsTheNormalQuantileOfItsBits) {
  constexpr int64_t kDraws = 20'001;  // not a multiple of a block
  Tensor t({kDraws}, DType::kF32);
  FillNormal(t, 1.0f, 3, "w");
  RandomStream stream({.seed = 3, .domain = RandomDomain::kInitialiser, .op = StreamOf("w")});
  for (int64_t i = 0; i < kDraws; ++i) {
    const double share = (stream.Next() + 0.5) * 0x1p-32;
    const double x = t.data<float>()[i];
    const double slope = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    ASSERT_NEAR(NormalShare(x), share, 1e-7 * slope * std::max(1.0, std::abs(x)) + 1e-15) << x;
  }
}

// Weights begin with the same bits on every machine and in every version: in the middle, and in the
// tails.
TEST(RandomTest, NormalDrawsHaveTheirKnownBits) {
  Tensor t({20'001}, DType::kF32);
  FillNormal(t, 1.0f, 3, "w");
  for (const auto& [place, value] : {std::pair(0, 0x1.3bca1ep-1f),
                                     {1, -0x1.950b26p-1f},
                                     {2, 0x1.081b28p+0f},
                                     {15'313, 0x1.0111dep+2f},
                                     {18'853, -0x1.ce96ep+1f},
                                     {20'000, 0x1.a16bb8p-2f}})
    EXPECT_EQ(t.data<float>()[place], value) << place;
}

TEST(RandomTest, ParametersOfDifferentNameGetDifferentNumbers) {
  Tensor a({4}, DType::kF32), b({4}, DType::kF32), again({4}, DType::kF32);
  FillUniform(a, 0, 1, 7, "conv1.weight");
  FillUniform(b, 0, 1, 7, "conv2.weight");
  FillUniform(again, 0, 1, 7, "conv1.weight");
  EXPECT_FALSE(std::ranges::equal(a.span<float>(), b.span<float>()));
  EXPECT_TRUE(std::ranges::equal(a.span<float>(), again.span<float>()));
}

TEST(RandomTest, APermutationVisitsEverySampleOnceAndChangesWithTheEpoch) {
  const std::vector<uint32_t> first = Permutation(100, 3, 0);
  std::vector<uint32_t> sorted = first;
  std::ranges::sort(sorted);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(sorted[i], i);
  EXPECT_EQ(first, Permutation(100, 3, 0));
  EXPECT_NE(first, Permutation(100, 3, 1));
  EXPECT_NE(first, Permutation(100, 4, 0));
  EXPECT_TRUE(Permutation(0, 3, 0).empty());
}

}  // namespace
}  // namespace ringmaster::tensor
