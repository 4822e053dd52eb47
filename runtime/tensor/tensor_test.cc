#include "runtime/tensor/tensor.h"

#include <utility>

#include <gtest/gtest.h>

#include "common/status.h"

namespace ringmaster::tensor {
namespace {

TEST(TensorTest, OwnsZeroedMemoryThatMovesWithIt) {
  Tensor a({2, 2}, DType::kF32);
  EXPECT_EQ(a.span<float>()[3], 0.0f);
  const void* address = a.raw();
  const Tensor b = std::move(a);
  EXPECT_EQ(b.raw(), address);
}

TEST(TensorTest, AViewSharesMemoryAndACloneDoesNot) {
  Tensor a({3}, DType::kI32);
  Tensor view = a.view();
  const Tensor clone = a.Clone();
  view.data<int32_t>()[1] = 7;
  EXPECT_EQ(a.data<int32_t>()[1], 7);
  EXPECT_EQ(clone.data<int32_t>()[1], 0);
}

TEST(TensorTest, CopyingFromAnotherShapeIsRefusedWithBothNamed) {
  Tensor a({3}, DType::kF32);
  const absl::Status status = a.CopyFrom(Tensor({2}, DType::kF32));
  EXPECT_EQ(Message(status), "cannot copy f32[2] into f32[3]");
  EXPECT_TRUE(a.CopyFrom(Tensor({3}, DType::kF32)).ok());
}

}  // namespace
}  // namespace ringmaster::tensor
