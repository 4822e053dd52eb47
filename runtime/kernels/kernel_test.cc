#include "runtime/kernels/kernel.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
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

TEST(KernelTest, OurVectorKernelsAreTakenOnlyWhereTheFastestIsAskedFor) {
  const ValueSpec spec{{8}, DType::kF32};
  const auto name = [&](Selection selection) {
    return Prepare({"relu", {}, {&spec, 1}, {&spec, 1}}, selection)->name();
  };
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this processor has no AVX2";
  EXPECT_EQ(name(Selection::kFastest), "vector/avx2");
  EXPECT_EQ(name(Selection::kOneDnn), "reference");
  EXPECT_EQ(name(Selection::kReference), "reference");
}

// What is no number must be seen in the loss, whichever kernel runs.
TEST(KernelTest, ReluAndMaxPoolingLetPassWhatIsNoNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Selection selection : {Selection::kFastest, Selection::kReference}) {
    const ValueSpec row{{4}, DType::kF32};
    const std::array<float, 4> x = {-1, nan, -0.0F, 2};
    std::array<float, 4> y{};
    const void* inputs[] = {x.data()};
    void* outputs[] = {y.data()};
    Prepare({"relu", {}, {&row, 1}, {&row, 1}}, selection)
        ->Run({inputs, outputs, nullptr, nullptr});
    EXPECT_EQ(y[0], 0);
    EXPECT_TRUE(std::isnan(y[1]));
    EXPECT_FALSE(std::signbit(y[2]));
    EXPECT_EQ(y[3], 2);
    const ValueSpec image{{1, 1, 2, 2}, DType::kF32}, pooled{{1, 1, 1, 1}, DType::kF32};
    const Attributes halves{{"window", std::vector<int64_t>{2, 2}},
                            {"stride", std::vector<int64_t>{2, 2}},
                            {"padding", std::vector<int64_t>{0, 0}}};
    Prepare({"max_pool2d", halves, {&image, 1}, {&pooled, 1}}, selection)
        ->Run({inputs, outputs, nullptr, nullptr});
    EXPECT_TRUE(std::isnan(y[0]));
  }
}

// Among equals the first gets the gradient, and among numbers that are none, too.
TEST(KernelTest, MaxPoolingGivesItsGradientToTheFirstOfTheLargest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const ValueSpec image{{1, 1, 2, 8}, DType::kF32}, pooled{{1, 1, 1, 4}, DType::kF32};
  const Attributes halves{{"window", std::vector<int64_t>{2, 2}},
                          {"stride", std::vector<int64_t>{2, 2}},
                          {"padding", std::vector<int64_t>{0, 0}}};
  const std::array<float, 16> x = {3, 3, 1, 2, 0,   nan, 1, 2,  //
                                   3, 3, 2, 2, nan, 9,   0, 4};
  const std::array<float, 4> dy = {10, 20, 30, 40};
  const ValueSpec specs[] = {image, pooled};
  const void* inputs[] = {x.data(), dy.data()};
  for (const Selection selection : {Selection::kFastest, Selection::kReference}) {
    std::array<float, 16> dx{};
    void* outputs[] = {dx.data()};
    Prepare({"max_pool2d_grad", halves, specs, {&image, 1}}, selection)
        ->Run({inputs, outputs, nullptr, nullptr});
    EXPECT_THAT(dx, ::testing::ElementsAre(10, 0, 0, 20, 0, 30, 0, 0,  //
                                           0, 0, 0, 0, 0, 0, 0, 40));
  }
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
