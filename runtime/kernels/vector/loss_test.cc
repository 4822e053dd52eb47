// The loss of few classes takes eight or sixteen rows at once: each has the bits that it has alone.
#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/kernels/kernel.h"
#include "runtime/tensor/random.h"

namespace ringmaster::kernels::vector {
namespace {

using tensor::DType;
using tensor::ValueSpec;

struct Batch {
  int64_t rows, classes;
  double smoothing;
  std::vector<float> logits;
  std::vector<int32_t> labels;
};

struct Result {
  float loss, correct;
  std::vector<float> probabilities;
};

Result LossOf(const Batch& batch) {
  const Attributes attributes = {{"smoothing", batch.smoothing}};
  const ValueSpec inputs[] = {{{batch.rows, batch.classes}, DType::kF32},
                              {{batch.rows}, DType::kI32}};
  const ValueSpec outputs[] = {
      {{}, DType::kF32}, {{}, DType::kF32}, {{batch.rows, batch.classes}, DType::kF32}};
  const auto primitive =
      Prepare({"softmax_cross_entropy", attributes, inputs, outputs}, Selection::kFastest);
  Result result{.probabilities = std::vector<float>(batch.logits.size())};
  std::vector<double> scratch(primitive->scratch_bytes() / sizeof(double));
  const void* in[] = {batch.logits.data(), batch.labels.data()};
  void* out[] = {&result.loss, &result.correct, result.probabilities.data()};
  primitive->Run({in, out, scratch.data(), nullptr});
  return result;
}

Batch RowOf(const Batch& batch, int64_t row) {
  const auto begin = batch.logits.begin() + row * batch.classes;
  return {1,
          batch.classes,
          batch.smoothing,
          {begin, begin + batch.classes},
          {batch.labels[static_cast<size_t>(row)]}};
}

class LossTest : public ::testing::TestWithParam<std::tuple<int64_t, double>> {
 protected:
  // Of sixteen rows, eight, and some.
  Batch Draw() const {
    const auto [classes, smoothing] = GetParam();
    Batch batch{.rows = 16 + 8 + 3, .classes = classes, .smoothing = smoothing};
    tensor::RandomStream stream({.seed = 3});
    for (int64_t i = 0; i < batch.rows * classes; ++i)
      batch.logits.push_back(8 * tensor::ToUniform(stream.Next()) - 4);
    for (int64_t i = 0; i < batch.rows; ++i)
      batch.labels.push_back(static_cast<int32_t>(stream.Below(static_cast<uint32_t>(classes))));
    return batch;
  }
};
INSTANTIATE_TEST_SUITE_P(ClassesAndSmoothing, LossTest,
                         ::testing::Combine(::testing::Values(7, 8, 10, 16, 23, 64, 65),
                                            ::testing::Values(0.0, 0.1)));

TEST_P(LossTest, EachRowOfABatchHasTheBitsOfThatRowAlone) {
  Batch batch = Draw();
  batch.logits[static_cast<size_t>(3 * batch.classes + 2)] =
      std::numeric_limits<float>::quiet_NaN();
  batch.logits[static_cast<size_t>(4 * batch.classes + 5)] = std::numeric_limits<float>::infinity();
  batch.labels[6] = -1;
  batch.labels[7] = static_cast<int32_t>(batch.classes);
  const Result whole = LossOf(batch);
  float correct = 0;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const Result alone = LossOf(RowOf(batch, row));
    correct += alone.correct;
    EXPECT_EQ(
        std::memcmp(alone.probabilities.data(), whole.probabilities.data() + row * batch.classes,
                    alone.probabilities.size() * sizeof(float)),
        0)
        << "row " << row;
  }
  EXPECT_EQ(whole.correct, correct);
}

TEST_P(LossTest, ABatchLosesWhatItsRowsLose) {
  const Batch batch = Draw();
  double rows = 0;
  for (int64_t row = 0; row < batch.rows; ++row)
    rows += static_cast<double>(LossOf(RowOf(batch, row)).loss);
  EXPECT_NEAR(static_cast<double>(LossOf(batch).loss), rows, 1e-6 * rows);
}

}  // namespace
}  // namespace ringmaster::kernels::vector
