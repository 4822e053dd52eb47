#include "runtime/data/text_dataset.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

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

absl::StatusOr<Splits> LoadContent(std::string_view content, int window, double hold_out,
                                   std::optional<int32_t> vocabulary = std::nullopt) {
  const TemporaryFile file(content);
  TextData config;
  config.path = TemporaryFile::kName;
  config.window = window;
  config.hold_out = hold_out;
  config.vocabulary = vocabulary;
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

// The tokens as a tokenizer's file has them, each of so many bytes.
std::string Numbers(std::initializer_list<uint32_t> tokens, int width) {
  std::string bytes;
  for (const uint32_t token : tokens) {
    for (int byte = 0; byte < width; ++byte) bytes += static_cast<char>(token >> (8 * byte));
  }
  return bytes;
}

TEST(TextDatasetTest, TakesATokenizersNumbersAsTheyAre) {
  for (const auto& [vocabulary, width, largest] : {std::tuple(50257, 2, 50256u),
                                                   {65536, 2, 65535u},
                                                   {65537, 4, 65536u},
                                                   {300000, 4, 299999u}}) {
    const std::string file = Numbers({7, 300, largest, 0, 258, 1}, width);
    const auto splits = LoadContent(file, 2, 0, vocabulary);
    ASSERT_TRUE(splits.ok()) << Message(splits.status());
    ASSERT_EQ(splits->train->size(), 2u);
    EXPECT_EQ(splits->train->format().classes, vocabulary);
    Tensor inputs({2, 2}, DType::kI32), labels({2, 2}, DType::kI32);
    const std::vector<uint32_t> rows = {0, 1};
    ASSERT_TRUE(splits->train->Fill(rows, inputs, labels).ok());
    const auto last = static_cast<int32_t>(largest);
    EXPECT_THAT(inputs.span<int32_t>(), ElementsAre(7, 300, last, 0));
    EXPECT_THAT(labels.span<int32_t>(), ElementsAre(300, last, 0, 258));
  }
}

TEST(TextDatasetTest, NamesTheTokenThatIsNotInTheVocabularyAndItsPlace) {
  const auto splits = LoadContent(Numbers({7, 300, 50257, 0}, 2), 2, 0, 50257);
  EXPECT_EQ(splits.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(splits.status()),
              ::testing::HasSubstr("token 50257, at place 2 of the file counted from 0, is not one "
                                   "of a vocabulary of 50257"));
}

TEST(TextDatasetTest, RefusesAFileThatEndsInTheMiddleOfAToken) {
  for (const auto& [vocabulary, bytes] : {std::pair(50257, 7), {65537, 6}}) {
    const auto splits = LoadContent(std::string(static_cast<size_t>(bytes), 0), 2, 0, vocabulary);
    EXPECT_EQ(splits.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(splits.status()), ::testing::HasSubstr("no whole number of tokens"));
  }
}

TEST(TextDatasetTest, IsAnotherDataSetWithAnotherVocabulary) {
  const std::string file = Numbers({1, 2, 3, 4}, 2);
  const auto one = LoadContent(file, 2, 0, 5), other = LoadContent(file, 2, 0, 6);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_NE(one->fingerprint, other->fingerprint);
}

}  // namespace
}  // namespace ringmaster::data
