#include "runtime/kernels/kernel.h"

#include <gtest/gtest.h>

namespace ringmaster::kernels {
namespace {

using tensor::DType;
using tensor::ValueSpec;

std::unique_ptr<Primitive> PrepareTanh(DType dtype, Selection selection) {
  const ValueSpec spec{{8}, dtype};
  return Prepare({"tanh", {}, {&spec, 1}, {&spec, 1}}, selection);
}

TEST(KernelTest, TheFastestThatFitsIsChosen) {
  EXPECT_EQ(PrepareTanh(DType::kF32, Selection::kFastest)->name().rfind("onednn/", 0), 0u);
}

TEST(KernelTest, ATypeThatTheFastOneLacksFallsBackToTheReference) {
  EXPECT_EQ(PrepareTanh(DType::kF64, Selection::kOneDnn)->name(), "reference");
}

TEST(KernelTest, TheReferenceCanBeForced) {
  EXPECT_EQ(PrepareTanh(DType::kF32, Selection::kReference)->name(), "reference");
}

TEST(KernelTest, NothingFitsATypeThatNobodyTakesOrAnUnknownOp) {
  EXPECT_EQ(PrepareTanh(DType::kI32, Selection::kFastest), nullptr);
  EXPECT_TRUE(ImplementationsOf("no_such_op").empty());
}

TEST(KernelTest, EveryListEndsWithTheReference) {
  for (const std::string_view op :
       {"conv2d", "linear", "matmul", "relu", "batch_norm", "max_pool2d"}) {
    ASSERT_FALSE(ImplementationsOf(op).empty()) << op;
    EXPECT_EQ(ImplementationsOf(op).back().family, Family::kReference) << op;
  }
}

TEST(KernelTest, SelectionIsParsedAndAnythingElseIsRefused) {
  Selection selection = Selection::kFastest;
  EXPECT_TRUE(ParseSelection("reference", &selection));
  EXPECT_EQ(selection, Selection::kReference);
  EXPECT_TRUE(ParseSelection("onednn", &selection));
  EXPECT_EQ(selection, Selection::kOneDnn);
  EXPECT_TRUE(ParseSelection("", &selection));
  EXPECT_EQ(selection, Selection::kFastest);
  EXPECT_FALSE(ParseSelection("fast", &selection));
}

TEST(AttributesTest, PrintInOrderAndReadZeroWhenAbsent) {
  const Attributes a{{"stride", std::vector<int64_t>{2, 1}}, {"rate", 0.5}, {"heads", int64_t{4}}};
  EXPECT_EQ(a.ToString(), "stride=[2, 1] rate=0.5 heads=4");
  EXPECT_EQ(a.Int("heads"), 4);
  EXPECT_EQ(a.Real("rate"), 0.5);
  EXPECT_EQ(a.Int("none"), 0);
  EXPECT_TRUE(a.Ints("heads").empty());
}

}  // namespace
}  // namespace ringmaster::kernels
