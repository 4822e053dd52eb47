#include "runtime/data/sample_check.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"

namespace ringmaster::data {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr tensor::DType kF32 = tensor::DType::kF32;

SampleFormat PairsOfTwoClasses() {
  return {.input = {{2}, kF32}, .classes = 2};
}

// Sample i is all i, and its labels are labels[i].
std::unique_ptr<const Dataset> Numbers(const SampleFormat& format, std::vector<int32_t> labels) {
  const auto size = static_cast<uint32_t>(labels.size());
  return MakeDataset(format, size, [=](uint32_t row, void* input, int32_t* label) {
    std::fill_n(static_cast<float*>(input), format.input.shape.elements(), static_cast<float>(row));
    std::fill_n(label, format.labels(), labels[row]);
  });
}

Splits SplitsOf(std::vector<int32_t> train, std::vector<int32_t> held_out = {}) {
  return {.train = Numbers(PairsOfTwoClasses(), std::move(train)),
          .held_out = Numbers(PairsOfTwoClasses(), std::move(held_out)),
          .fingerprint = {}};
}

std::string FingerprintAfterCheck(Splits splits) {
  const absl::Status status = CheckSplits(splits);
  EXPECT_TRUE(status.ok()) << Message(status);
  return splits.fingerprint;
}

std::string ProblemOf(Splits splits) {
  const absl::Status status = CheckSplits(splits);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return Message(status);
}

TEST(CheckSplitsTest, HashesWhatIsInTheSamplesAndWhichPartTheyAreIn) {
  const std::string hash = FingerprintAfterCheck(SplitsOf({0, 1, 1}, {0}));
  EXPECT_THAT(hash, MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(hash, FingerprintAfterCheck(SplitsOf({0, 1, 1}, {0})));
  EXPECT_NE(hash, FingerprintAfterCheck(SplitsOf({0, 1, 0}, {0})));
  EXPECT_NE(hash, FingerprintAfterCheck(SplitsOf({0, 1}, {1, 0})));
}

TEST(CheckSplitsTest, MakesAnAbsentHeldOutPartAnEmptyOne) {
  Splits splits = SplitsOf({0, 1});
  splits.held_out = nullptr;
  ASSERT_TRUE(CheckSplits(splits).ok());
  ASSERT_NE(splits.held_out, nullptr);
  EXPECT_EQ(splits.held_out->size(), 0u);
  EXPECT_EQ(splits.fingerprint, FingerprintAfterCheck(SplitsOf({0, 1})));
}

TEST(CheckSplitsTest, ReadsNothingWhereTheFingerprintIsKnown) {
  Splits splits;
  splits.train = MakeDataset(PairsOfTwoClasses(), 2, [](uint32_t row, void*, int32_t*) {
    ADD_FAILURE() << "sample " << row << " is read";
  });
  splits.fingerprint = "version 3";
  EXPECT_TRUE(CheckSplits(splits).ok());
  EXPECT_EQ(splits.fingerprint, "version 3");
}

TEST(CheckSplitsTest, RefusesNoSamples) {
  EXPECT_EQ(ProblemOf(SplitsOf({}, {1})), "no samples to train on; at least 1 is needed");
  EXPECT_EQ(ProblemOf(Splits{}), "no samples to train on; at least 1 is needed");
}

TEST(CheckSplitsTest, NamesTheSampleWhoseLabelIsNoClass) {
  EXPECT_EQ(ProblemOf(SplitsOf({0, 2})), "training sample 1: label 2 is not in 0..1 (2 classes)");
  EXPECT_EQ(ProblemOf(SplitsOf({0, 1}, {1, 0, -1})),
            "held-out sample 2: label -1 is not in 0..1 (2 classes)");
}

TEST(CheckLabelsTest, NamesTheFirstOfTheseSamplesWhoseLabelIsNoClass) {
  const auto samples = Numbers(PairsOfTwoClasses(), {0, 2, 1, -1});
  const auto problem = [&](std::vector<uint32_t> rows) {
    return Message(CheckLabels(*samples, rows));
  };
  EXPECT_EQ(problem({2, 0}), "");
  EXPECT_EQ(problem({0, 3, 1}), "sample 3: label -1 is not in 0..1 (2 classes)");
  EXPECT_EQ(problem({0, 4}), "sample 4 of a data set of 4 was asked for");
}

TEST(CheckLabelsTest, CountsTheLabelsOfEachSampleThatWasRead) {
  const data::SampleFormat text{
      .input = {{2}, tensor::DType::kI32}, .label_shape = {2}, .classes = 3};
  const uint32_t rows[] = {7, 5};
  const int32_t right[] = {0, 2, 1, 1}, wrong[] = {0, 2, 1, 3};
  EXPECT_TRUE(CheckLabels(text, rows, right).ok());
  EXPECT_EQ(Message(CheckLabels(text, rows, wrong)),
            "sample 5: label 3 is not in 0..2 (3 classes)");
}

TEST(CheckSplitsTest, RefusesAFormatThatNoNetworkTakes) {
  const auto problem = [](const std::function<void(SampleFormat&)>& change) {
    SampleFormat format = PairsOfTwoClasses();
    change(format);
    Splits splits;
    splits.train = Numbers(format, {0});
    return ProblemOf(std::move(splits));
  };
  EXPECT_THAT(problem([](auto& format) {
                format.input.shape = {3, 0};
              }),
              HasSubstr("samples of shape [3, 0]: at most 7 axes, extents of at least 1"));
  EXPECT_THAT(problem([](auto& format) { format.input.shape = {1, 1, 1, 1, 1, 1, 1, 1}; }),
              HasSubstr("at most 7 axes"));
  EXPECT_THAT(problem([](auto& format) { format.label_shape = {int64_t{1} << 40}; }),
              HasSubstr("labels of shape [1099511627776]: "));
  EXPECT_EQ(problem([](auto& format) { format.input.dtype = tensor::DType::kF64; }),
            "samples are f64[2]; make them f32 features or i32 tokens");
  EXPECT_EQ(problem([](auto& format) { format.input.layout = tensor::Layout::kBlocks8; }),
            "samples are f32[2] in blocks of 8; make them row-major");
  EXPECT_EQ(problem([](auto& format) { format.classes = 0; }),
            "labels of 0 classes; at least 1 is needed");
}

SampleFormat PairsOfTwoLabels() {
  return {.input = {{2}, kF32}, .label_shape = {2}, .classes = 2, .label_names = {"a", "b"}};
}

TEST(CheckSplitsTest, WantsANameAndAScoreForEachIndependentLabel) {
  const auto problem = [](const std::function<void(SampleFormat&)>& change) {
    SampleFormat format = PairsOfTwoLabels();
    change(format);
    Splits splits;
    splits.train = Numbers(format, {0});
    return ProblemOf(std::move(splits));
  };
  EXPECT_EQ(problem([](auto& format) { format.label_names.pop_back(); }),
            "labels of shape [2] and 2 scores have 1 names; each needs one of its own");
  EXPECT_THAT(problem([](auto& format) { format.classes = 3; }),
              HasSubstr("3 scores have 2 names"));
  EXPECT_THAT(problem([](auto& format) { format.label_shape = {2, 1}; }), HasSubstr("[2, 1]"));
}

TEST(CheckSplitsTest, TakesIndependentLabelsThatHoldOrDoNotAndHashesTheirNames) {
  const auto splits = [](const SampleFormat& format, std::vector<int32_t> labels) {
    Splits made;
    made.train = Numbers(format, std::move(labels));
    return made;
  };
  EXPECT_EQ(ProblemOf(splits(PairsOfTwoLabels(), {0, 2})),
            "training sample 1: label 2 is neither 1 nor 0: each holds or does not");
  SampleFormat renamed = PairsOfTwoLabels();
  renamed.label_names[0] = "c";
  EXPECT_NE(FingerprintAfterCheck(splits(PairsOfTwoLabels(), {0, 1})),
            FingerprintAfterCheck(splits(renamed, {0, 1})));
}

TEST(CheckSplitsTest, RefusesAHeldOutPartOfAnotherFormat) {
  Splits splits = SplitsOf({0, 1});
  splits.held_out = Numbers({.input = {{3}, kF32}, .classes = 2}, {0});
  EXPECT_EQ(ProblemOf(std::move(splits)),
            "held-out samples have another format than those to train on");
}

}  // namespace
}  // namespace ringmaster::data
