#include "runtime/data/text_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/data/temporary_file.h"

namespace ringmaster::data {
namespace {

using tensor::DType;
using tensor::Tensor;
using ::testing::ElementsAre;
using training::v1alpha1::TextData;

absl::StatusOr<Splits> LoadContent(std::string_view content, int window, double hold_out) {
  const TemporaryFile file(content);
  TextData config;
  config.path = TemporaryFile::kName;
  config.window = window;
  config.hold_out = hold_out;
  return LoadText(config, file.workspace());
}

TEST(TextDatasetTest, LabelsEachCharacterWithTheNext) {
  const auto splits = LoadContent("badcabdac", 4, 0);
  ASSERT_TRUE(splits.ok()) << Message(splits.status());
  ASSERT_EQ(splits->train->size(), 2u);
  EXPECT_EQ(splits->train->format().classes, 4);
  Tensor inputs({2, 4}, DType::kI32), labels({2, 4}, DType::kI32);
  const std::vector<uint32_t> rows = {1, 0};
  ASSERT_TRUE(splits->train->Fill(rows, inputs, labels).ok());
  EXPECT_THAT(inputs.span<int32_t>(), ElementsAre(0, 1, 3, 0, 1, 0, 3, 2));
  EXPECT_THAT(labels.span<int32_t>(), ElementsAre(1, 3, 0, 2, 0, 3, 2, 0));
}

TEST(TextDatasetTest, HoldsOutTheEndWithTheSameVocabulary) {
  const auto splits = LoadContent("aaaaaaaaaaaaaaaaaaaazzzzz", 4, 0.2);
  ASSERT_TRUE(splits.ok()) << Message(splits.status());
  ASSERT_EQ(splits->held_out->size(), 1u);
  EXPECT_EQ(splits->train->size(), 4u);
  EXPECT_EQ(splits->held_out->format(), splits->train->format());
  Tensor inputs({1, 4}, DType::kI32), labels({1, 4}, DType::kI32);
  const std::vector<uint32_t> first = {0};
  ASSERT_TRUE(splits->held_out->Fill(first, inputs, labels).ok());
  EXPECT_THAT(inputs.span<int32_t>(), ElementsAre(1, 1, 1, 1));
}

TEST(TextDatasetTest, AcceptsEveryByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(255 - i);
  const auto splits = LoadContent(bytes + "x", 256, 0);
  ASSERT_TRUE(splits.ok()) << Message(splits.status());
  EXPECT_EQ(splits->train->format().classes, 256);
}

TEST(TextDatasetTest, RefusesATextThatIsTooShortForAWindowInEachPart) {
  for (const auto& [content, hold_out] :
       {std::pair("abcd", 0.0), {"abcdefghijkl", 0.1}, {"abcdefg", 0.5}}) {
    const auto splits = LoadContent(content, 4, hold_out);
    EXPECT_EQ(splits.status().code(), absl::StatusCode::kInvalidArgument) << content;
    EXPECT_THAT(Message(splits.status()), ::testing::HasSubstr("too few for a window of 4"));
  }
  EXPECT_THAT(Message(LoadContent("", 4, 0).status()), ::testing::HasSubstr("the file is empty"));
}

}  // namespace
}  // namespace ringmaster::data
