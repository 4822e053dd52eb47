#include "runtime/checkpoint/safetensors.h"

#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"

namespace ringmaster::checkpoint {
namespace {

using ::testing::HasSubstr;

std::string FileOf(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>((header.size() >> (8 * i)) & 0xff);
  return length + header + data;
}

std::string SmallFile() {
  static const std::vector<float> weight = {1, 2, 3, 4, 5, 6};
  static const std::vector<int64_t> counts = {7};
  const TensorView tensors[] = {
      {.name = "fc.weight", .shape = {2, 3}, .data = std::as_bytes(std::span(weight))},
      {.name = "counts", .dtype = "I64", .shape = {1}, .data = std::as_bytes(std::span(counts))},
      {.name = "empty", .shape = {0, 4}, .data = {}}};
  std::string file = EncodeHeader(tensors, {{"step", "20"}});
  for (const TensorView& tensor : tensors) {
    file.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  }
  return file;
}

TEST(SafetensorsTest, ReadsBackNamesShapesBytesAndMetadata) {
  auto file = SafetensorsFile::Parse(SmallFile(), "f");
  ASSERT_TRUE(file.ok()) << file.status();
  const SafetensorsFile moved = *std::move(file);
  EXPECT_EQ(moved.metadata(), (Metadata{{"step", "20"}}));
  ASSERT_EQ(moved.tensors().size(), 3U);
  const TensorView& weight = moved.tensors()[0];
  EXPECT_EQ(weight.name, "fc.weight");
  EXPECT_EQ(weight.dtype, "F32");
  EXPECT_EQ(weight.shape, (std::vector<int64_t>{2, 3}));
  ASSERT_EQ(weight.data.size(), 24U);
  EXPECT_EQ(reinterpret_cast<const float*>(weight.data.data())[5], 6.0F);
  EXPECT_EQ(moved.data().size(), 32U);
}

TEST(SafetensorsTest, WritesTheHeaderThatTheFormatDescribes) {
  const std::vector<float> one = {1};
  const TensorView tensors[] = {{.name = "w", .shape = {1}, .data = std::as_bytes(std::span(one))}};
  const std::string header = EncodeHeader(tensors, {{"step", "1"}});
  EXPECT_EQ(header.size() % 8, 0U);
  EXPECT_EQ(
      header.substr(8, header.find_last_not_of(' ') - 7),
      R"({"__metadata__":{"step":"1"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})");
}

TEST(SafetensorsTest, NamesATornFileAtEveryLength) {
  const std::string whole = SmallFile();
  for (size_t length = 0; length < whole.size(); ++length) {
    const auto file = SafetensorsFile::Parse(whole.substr(0, length), "torn-file");
    ASSERT_EQ(file.status().code(), absl::StatusCode::kDataLoss) << length;
    EXPECT_THAT(Message(file.status()), HasSubstr("torn-file: "));
  }
}

TEST(SafetensorsTest, RefusesHeadersThatContradictTheData) {
  const auto message = [](const std::string& header, const std::string& data = "01234567") {
    return Message(SafetensorsFile::Parse(FileOf(header, data), "f").status());
  };
  EXPECT_THAT(message("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(message("{"), HasSubstr("not a JSON object"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})"),
              HasSubstr("4 bytes too many"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})"),
              HasSubstr("its shape does not fit"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})"),
              HasSubstr("no dtype"));
  EXPECT_THAT(message(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})"),
              HasSubstr("no shape"));
  EXPECT_THAT(
      message(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,8]}})"),
      HasSubstr("its shape does not fit"));
  const std::string first = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_THAT(message("{" + first + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})"),
              HasSubstr("tensor b does not follow"));
  EXPECT_THAT(message("{" + first + "," + first + "}"), HasSubstr("a name twice"));
}

TEST(SafetensorsTest, SurvivesRandomDamage) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  const std::string whole = SmallFile();
  for (int i = 0; i < 2000; ++i) {
    std::string damaged = whole;
    for (int flips = 0; flips < 3; ++flips) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1U << (random() % 8));
    }
    const auto file = SafetensorsFile::Parse(std::move(damaged), "f");
    if (!file.ok()) {
      EXPECT_EQ(file.status().code(), absl::StatusCode::kDataLoss);
    }
  }
}

}  // namespace
}  // namespace ringmaster::checkpoint
