#include "runtime/tensor/finite.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace ringmaster::tensor {
namespace {

template <typename Float>
class FiniteTest : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FiniteTest, Floats);

TYPED_TEST(FiniteTest, NothingAndTheLargestAndSmallestNumbersAreFinite) {
  using Limits = std::numeric_limits<TypeParam>;
  const std::vector<TypeParam> values = {0, -0.0, Limits::max(), Limits::lowest(),
                                         Limits::denorm_min()};
  EXPECT_TRUE(AllFinite(std::span<const TypeParam>(values)));
  EXPECT_TRUE(AllFinite(std::span<const TypeParam>()));
}

TYPED_TEST(FiniteTest, OneThatIsNotIsFoundWhereverItStands) {
  using Limits = std::numeric_limits<TypeParam>;
  std::vector<TypeParam> values(40'007, 1);
  std::vector<size_t> places{0, values.size() - 1};  // and all of what is looked at together
  for (size_t place = 20'000; place < 20'064; ++place) places.push_back(place);
  for (const TypeParam bad :
       {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -Limits::quiet_NaN()}) {
    for (const size_t place : places) {
      values[place] = bad;
      EXPECT_FALSE(AllFinite(std::span<const TypeParam>(values))) << bad << " at " << place;
      values[place] = 1;
    }
  }
}

}  // namespace
}  // namespace ringmaster::tensor
