#include "runtime/collectives/compression/sixteen_bits.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/collectives/add.h"
#include "runtime/collectives/compression/half_convert.h"

namespace ringmaster::collectives {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class SixteenBitsTest : public ::testing::Test {
 protected:
  SixteenBitsTest() : seed_(std::random_device{}()), random_(seed_) {}
  void TearDown() override {
    if (HasFailure()) ADD_FAILURE() << "seed " << seed_;
  }

  float AnyFloat() { return std::bit_cast<float>(static_cast<uint32_t>(random_())); }
  // Values whose largest is about 2^exponent.
  std::vector<float> Around(int exponent, size_t count) {
    std::vector<float> values(count);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (float& value : values) value = std::ldexp(uniform(random_), exponent);
    return values;
  }

  const unsigned seed_;
  std::mt19937 random_;
};

std::vector<float> ThereAndBack(const std::vector<float>& values) {
  std::vector<HalfBlock> blocks(EncodedCount<HalfBlock>(values.size()));
  Encode(values, blocks);
  std::vector<float> back(values.size());
  Decode(blocks, back);
  return back;
}

TEST_F(SixteenBitsTest, BFloat16InBulkIsThatOfOneByOne) {
  std::vector<float> values(100'003);
  for (float& value : values) value = AnyFloat();
  std::vector<BFloat16> encoded(values.size());
  Encode(values, encoded);
  std::vector<float> decoded(values.size());
  Decode(encoded, decoded);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(encoded[i].bits, ToBFloat16(values[i]).bits) << values[i];
    ASSERT_EQ(std::bit_cast<uint32_t>(decoded[i]), std::bit_cast<uint32_t>(ToFloat(encoded[i])));
  }
}

TEST_F(SixteenBitsTest, TheProcessorsHalvesAreThePortableOnes) {
  std::vector<float> values(100'003);
  for (float& value : values) value = std::ldexp(AnyFloat(), static_cast<int>(random_() % 3) * 40);
  for (const float scale : {1.0F, 0x1p-20F, 0x1p30F}) {
    std::vector<Float16> one(values.size());
    std::vector<Float16> other(values.size());
    ToHalves(values.data(), scale, one.data(), values.size());
    ToHalvesPortably(values.data(), scale, other.data(), values.size());
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(one[i].bits, other[i].bits) << values[i];
  }
  std::vector<Float16> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<uint16_t>(i);
  std::vector<float> one(all.size());
  std::vector<float> other(all.size());
  FromHalves(all.data(), 0x1p5F, one.data(), all.size());
  FromHalvesPortably(all.data(), 0x1p5F, other.data(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::isnan(other[i])) {
      EXPECT_TRUE(std::isnan(one[i]));
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(one[i]), std::bit_cast<uint32_t>(other[i])) << i;
    }
  }
}

TEST_F(SixteenBitsTest, ABlockKeepsElevenBitsAtEveryMagnitude) {
  for (int exponent = -125; exponent <= 127; ++exponent) {
    const std::vector<float> values = Around(exponent, 700);
    const std::vector<float> back = ThereAndBack(values);
    for (size_t i = 0; i < values.size(); ++i) {
      const double error = std::abs(double{values[i]} - double{back[i]});
      // Half a place of a half, or of the smallest one where there are no more bits.
      const double bound =
          std::max(std::abs(double{values[i]}) * 0x1p-11, std::ldexp(1.0, exponent - 39));
      const bool at_the_edge = exponent == 127 && std::isinf(back[i]);
      ASSERT_TRUE(error <= bound || at_the_edge) << values[i] << " became " << back[i];
    }
  }
}

TEST_F(SixteenBitsTest, ABlockIsExactForWhatIsSmall) {
  EXPECT_EQ(ThereAndBack({0.0F, 1.0F, -2.5F, 1024.0F}),
            (std::vector<float>{0.0F, 1.0F, -2.5F, 1024.0F}));
  EXPECT_TRUE(std::signbit(ThereAndBack({-0.0F})[0]));
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(ThereAndBack({std::ldexp(least, 3)})[0], std::ldexp(least, 3));
}

TEST_F(SixteenBitsTest, ABlockPassesOnWhatIsNotFinite) {
  const std::vector<float> back =
      ThereAndBack({1.0F, kInfinity, -kInfinity, std::bit_cast<float>(0xffc12345U)});
  EXPECT_EQ(back[0], 1.0F);
  EXPECT_EQ(back[1], kInfinity);
  EXPECT_EQ(back[2], -kInfinity);
  EXPECT_TRUE(std::isnan(back[3]));
}

TEST_F(SixteenBitsTest, SumsOfBlocksNeitherOverflowNorUnderflow) {
  for (const float value : {60'000.0F, 3e-30F, 1e30F}) {
    const std::vector<float> values(HalfBlock::kValues, value);
    HalfBlock sum;
    HalfBlock one;
    Encode(values, std::span(&one, 1));
    sum = one;
    for (int i = 1; i < 1024; i *= 2) Add(&sum, &sum, &sum, 1);
    std::vector<float> total(values.size());
    Decode(std::span<const HalfBlock>(&sum, 1), total);
    EXPECT_NEAR(total[0] / value, 1024, 1) << "a half alone holds neither the sum nor the value";
  }
}

TEST_F(SixteenBitsTest, AdditionRoundsTheSumOfFloatsOnce) {
  const std::vector<float> left = Around(3, 1000);
  const std::vector<float> right = Around(-2, 1000);
  std::vector<BFloat16> a(1000);
  std::vector<BFloat16> b(1000);
  Encode(left, a);
  Encode(right, b);
  std::vector<BFloat16> sum(1000);
  Add(sum.data(), a.data(), b.data(), sum.size());
  for (size_t i = 0; i < sum.size(); ++i)
    ASSERT_EQ(sum[i].bits, ToBFloat16(ToFloat(a[i]) + ToFloat(b[i])).bits);
}

}  // namespace
}  // namespace ringmaster::collectives
