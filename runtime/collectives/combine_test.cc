#include "runtime/collectives/combine.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/collectives/elementwise.h"

namespace ringmaster::collectives {
namespace {

TEST(Float16Test, EveryHalfSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = ToFloat(Float16{static_cast<uint16_t>(bits)});
    if (std::isnan(value)) {
      EXPECT_GT(bits & 0x7fff, 0x7c00u);
      EXPECT_EQ(ToFloat16(value).bits, 0x7e00);
    } else {
      ASSERT_EQ(ToFloat16(value).bits, bits);
    }
  }
  EXPECT_EQ(ToFloat(Float16{0x3c00}), 1.0f);
  EXPECT_EQ(ToFloat(Float16{0x7bff}), 65504.0f);
  EXPECT_EQ(ToFloat(Float16{0x0001}), 0x1p-24f);
}

TEST(Float16Test, RoundsToTheNearestAndTiesToEven) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const uint16_t above = static_cast<uint16_t>(bits + 1);
    const float low = ToFloat(Float16{bits});
    const float high = ToFloat(Float16{above});
    const float middle = (low + high) / 2;
    const float infinity = std::numeric_limits<float>::infinity();
    ASSERT_EQ(ToFloat16(middle).bits, bits % 2 == 0 ? bits : above);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, infinity)).bits, above);
    ASSERT_EQ(ToFloat16(std::nextafter(middle, -infinity)).bits, bits);
  }
  EXPECT_EQ(ToFloat16(65519.9f).bits, 0x7bff);
  EXPECT_EQ(ToFloat16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(ToFloat16(-1e30f).bits, 0xfc00);
}

TEST(BFloat16Test, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const float low = ToFloat(BFloat16{static_cast<uint16_t>(bits)});
    ASSERT_EQ(ToBFloat16(low).bits, bits);
    const float middle = std::bit_cast<float>(bits << 16 | 0x8000);
    ASSERT_EQ(ToBFloat16(middle).bits, bits + bits % 2);
  }
  EXPECT_EQ(ToBFloat16(std::nanf("")).bits, 0x7fc0);
  EXPECT_EQ(ToBFloat16(-std::numeric_limits<float>::infinity()).bits, 0xff80);
}

template <typename T>
std::vector<T> Combined(Reduction reduction, std::vector<T> left, const std::vector<T>& right) {
  const Elements a(left);
  const ConstElements b(right);
  Combiner{reduction, a.type()}(a.data(), a.data(), b.data(), a.count());
  return left;
}

TEST(CombinerTest, ANanOnEitherSideMakesTheSameNan) {
  const float payload = std::bit_cast<float>(0xffc12345u);
  for (const Reduction reduction : {Reduction::kSum, Reduction::kAverage, Reduction::kMin,
                                    Reduction::kMax, Reduction::kProduct}) {
    std::vector<float> left(19, 1.0f);  // a whole vector, and a rest
    std::vector<float> right(19, 2.0f);
    for (const size_t i : {size_t{2}, size_t{17}}) left[i] = payload;
    for (const size_t i : {size_t{3}, size_t{18}}) right[i] = payload;
    const std::vector<float> result = Combined(reduction, left, right);
    for (const size_t i : {2, 3, 17, 18})
      EXPECT_EQ(std::bit_cast<uint32_t>(result[i]), 0x7fc00000u) << NameOf(reduction) << " " << i;
    EXPECT_FALSE(std::isnan(result[0]));
  }
}

TEST(CombinerTest, IntegersWrapAround) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Combined<int64_t>(Reduction::kSum, {most}, {1})[0],
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Combined<uint8_t>(Reduction::kProduct, {200}, {3})[0], 600 % 256);
  EXPECT_EQ(Combined<int32_t>(Reduction::kMin, {-5}, {3})[0], -5);
}

// Bytes of any kind, NaNs among them, at any length, from any address.
template <typename T, typename Op>
void ExpectTheSameOneByOne(Reduction reduction, std::mt19937& random) {
  for (size_t count = 0; count < 70; ++count) {
    const size_t shift = random() % 8;
    const size_t bytes = count * sizeof(T);
    std::vector<std::byte> left(shift + bytes);
    std::vector<std::byte> right(shift + bytes);
    std::vector<std::byte> expected(bytes);
    for (std::vector<std::byte>* side : {&left, &right}) {
      for (std::byte& byte : *side)
        byte = static_cast<std::byte>(random() % 4 == 0 ? 0xff : random());
    }
    for (size_t i = 0; i < count; ++i) {
      internal::ElementwisePlain<T, Op>(&expected[i * sizeof(T)], &left[shift + i * sizeof(T)],
                                        &right[shift + i * sizeof(T)], 1);
    }
    const Combiner combine{reduction, ElementTypeOf<T>()};
    combine(left.data() + shift, left.data() + shift, right.data() + shift, count);
    ASSERT_EQ(std::vector<std::byte>(left.begin() + static_cast<ptrdiff_t>(shift), left.end()),
              expected)
        << NameOf(reduction) << " of " << count << " " << NameOf(ElementTypeOf<T>());
  }
}

template <typename T>
void ExpectTheSameOneByOne(std::mt19937& random) {
  ExpectTheSameOneByOne<T, Min>(Reduction::kMin, random);
  ExpectTheSameOneByOne<T, Max>(Reduction::kMax, random);
  if constexpr (std::is_floating_point_v<T>) {  // signed integers would overflow here
    ExpectTheSameOneByOne<T, Sum>(Reduction::kSum, random);
    ExpectTheSameOneByOne<T, Product>(Reduction::kProduct, random);
  }
}

TEST(CombinerTest, GivesTheSameBitsInVectorsAsOneByOne) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  ExpectTheSameOneByOne<float>(random);
  ExpectTheSameOneByOne<double>(random);
  ExpectTheSameOneByOne<int32_t>(random);
  ExpectTheSameOneByOne<int64_t>(random);
  ExpectTheSameOneByOne<uint8_t>(random);
}

// Longer than what stays in the nearest cache, over each of the three and beside them.
TEST(CombinerTest, CombinesThreeAsTwoCallsDo) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const ElementType type :
       {ElementType::kF64, ElementType::kF32, ElementType::kF16, ElementType::kBF16,
        ElementType::kI64, ElementType::kI32, ElementType::kU8}) {
    for (const Reduction reduction : {Reduction::kSum, Reduction::kAverage, Reduction::kMin,
                                      Reduction::kMax, Reduction::kProduct}) {
      for (const size_t bytes : {size_t{0}, size_t{8}, size_t{8192}, size_t{30'008}}) {
        std::vector<std::byte> operands[3];  // the outer one, the left and the right one
        for (std::vector<std::byte>& operand : operands) {
          operand.resize(bytes);
          for (std::byte& byte : operand) byte = static_cast<std::byte>(random());
        }
        const Combiner combine{reduction, type};
        const size_t count = CountIn(bytes, type);
        std::vector<std::byte> expected(bytes);
        combine(expected.data(), operands[1].data(), operands[2].data(), count);
        combine(expected.data(), operands[0].data(), expected.data(), count);
        for (int over = 0; over <= 3; ++over) {
          std::vector<std::byte> places[4] = {operands[0], operands[1], operands[2],
                                              std::vector<std::byte>(bytes)};
          combine(places[over].data(), places[0].data(), places[1].data(), places[2].data(), count);
          ASSERT_EQ(places[over], expected) << NameOf(reduction) << " of " << NameOf(type) << ", "
                                            << bytes << " bytes over operand " << over;
        }
      }
    }
  }
}

TEST(AverageTest, NeitherOverflowsNorLosesWhatIsSmall) {
  std::vector<Float16> values = {ToFloat16(60000), ToFloat16(0x1p-24f)};
  std::vector<float> wide(2);
  Widen(values, wide);
  for (float& value : wide) value *= 4;  // the sum of four such ranks
  DivideAndNarrow(wide, 4, values);
  EXPECT_EQ(values[0].bits, ToFloat16(60000).bits);
  EXPECT_EQ(values[1].bits, 1);
}

}  // namespace
}  // namespace ringmaster::collectives
