#include "runtime/tensor/shape.h"

#include <gtest/gtest.h>

namespace ringmaster::tensor {
namespace {

TEST(ShapeTest, CountsElementsAndNamesItself) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.elements(), 24);
  EXPECT_EQ(shape.dim(-1), 4);
  EXPECT_EQ(shape.Product(0, 2), 6);
  EXPECT_EQ(shape.ToString(), "[2, 3, 4]");
}

TEST(ShapeTest, AScalarHasOneElement) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape().ToString(), "[]");
}

TEST(ShapeTest, ComparesByRankAndExtents) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
}

TEST(ShapeTest, ASpecKnowsItsBytesAndPrintsItsType) {
  const ValueSpec spec{{4, 2}, DType::kF64};
  EXPECT_EQ(spec.bytes(), 64u);
  EXPECT_EQ(spec.ToString(), "f64[4, 2]");
  EXPECT_EQ((ValueSpec{{3}, DType::kBF16}.bytes()), 6u);
  EXPECT_EQ((ValueSpec{{}, DType::kI32}.ToString()), "i32[]");
}

}  // namespace
}  // namespace ringmaster::tensor
