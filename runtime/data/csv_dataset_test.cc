#include "runtime/data/csv_dataset.h"

#include <filesystem>
#include <limits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/data/data_file.h"
#include "runtime/data/temporary_file.h"

namespace ringmaster::data {
namespace {

using tensor::DType;
using tensor::Tensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using training::v1alpha1::CsvData;

// Label first, two features, three classes, nothing held out.
CsvData Config() {
  CsvData config;
  config.path = TemporaryFile::kName;
  config.classes = 3;
  config.shape = {2};
  config.hold_out_every = 0;
  return config;
}

absl::StatusOr<Splits> LoadContent(std::string_view content, const CsvData& config = Config()) {
  const TemporaryFile file(content);
  return LoadCsv(config, file.workspace());
}

// What is wrong with `content`, without the directory: "data.txt:3: ...".
std::string ErrorOf(std::string_view content, const CsvData& config = Config()) {
  const absl::StatusOr<Splits> splits = LoadContent(content, config);
  EXPECT_EQ(splits.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message = Message(splits.status());
  return message.substr(std::min(message.find(TemporaryFile::kName), message.size()));
}

struct Batch {
  std::vector<float> inputs;
  std::vector<int32_t> labels;
};

// All samples of a part, in their own order.
Batch AllOf(const Dataset& part) {
  const int64_t n = part.size();
  Tensor inputs({n, 2}, DType::kF32), labels({n}, DType::kI32);
  std::vector<uint32_t> rows(part.size());
  for (uint32_t i = 0; i < part.size(); ++i) rows[i] = i;
  EXPECT_TRUE(part.Fill(rows, inputs, labels).ok());
  return {{inputs.span<float>().begin(), inputs.span<float>().end()},
          {labels.span<int32_t>().begin(), labels.span<int32_t>().end()}};
}

TEST(CsvDatasetTest, ReadsLabelsAndScaledFeatures) {
  CsvData config = Config();
  config.scale = 16;
  const auto splits = LoadContent("label,a,b\n0,8,16\n2,-4,1e1\n", config);
  ASSERT_TRUE(splits.ok()) << Message(splits.status());
  const Batch batch = AllOf(*splits->train);
  EXPECT_THAT(batch.labels, ElementsAre(0, 2));
  EXPECT_THAT(batch.inputs, ElementsAre(0.5f, 1.0f, -0.25f, 0.625f));
  EXPECT_EQ(splits->held_out->size(), 0u);
  EXPECT_EQ(splits->train->format().classes, 3);
}

TEST(CsvDatasetTest, FindsTheLabelInAnyColumn) {
  CsvData config = Config();
  config.label_column = 1;
  config.header = false;
  const auto splits = LoadContent("5,2,6\n7,0,8\n", config);
  ASSERT_TRUE(splits.ok()) << Message(splits.status());
  const Batch batch = AllOf(*splits->train);
  EXPECT_THAT(batch.labels, ElementsAre(2, 0));
  EXPECT_THAT(batch.inputs, ElementsAre(5, 6, 7, 8));
}

TEST(CsvDatasetTest, AcceptsCrlfAByteOrderMarkBlanksAndNoNewlineAtTheEnd) {
  for (const char* content :
       {"l,a,b\r\n1,2,3\r\n", "\xEF\xBB\xBFl,a,b\n1,2,3", "l,a,b\n 1 ,\t2, 3 \n\n\r\n"}) {
    const auto splits = LoadContent(content);
    ASSERT_TRUE(splits.ok()) << Message(splits.status());
    EXPECT_THAT(AllOf(*splits->train).inputs, ElementsAre(2, 3)) << content;
  }
}

TEST(CsvDatasetTest, HoldsOutEveryNthSampleOfTheFile) {
  CsvData config = Config();
  config.hold_out_every = 3;
  const auto splits =
      LoadContent("l,a,b\n0,1,0\n0,2,0\n1,3,0\n0,4,0\n0,5,0\n2,6,0\n0,7,0\n", config);
  ASSERT_TRUE(splits.ok()) << Message(splits.status());
  EXPECT_THAT(AllOf(*splits->held_out).labels, ElementsAre(1, 2));
  EXPECT_EQ(splits->train->size(), 5u);
}

// Two labels behind the first feature.
CsvData TwoLabels() {
  CsvData config = Config();
  config.classes.reset();
  config.labels = 2;
  config.label_column = 1;
  return config;
}

TEST(CsvDatasetTest, ReadsSeveralLabelsASampleAndTheirNames) {
  const auto splits = LoadContent("a, Edema ,Hernia,b\n1,0,1,2\n3,1,1,4\n", TwoLabels());
  ASSERT_TRUE(splits.ok()) << Message(splits.status());
  const SampleFormat& format = splits->train->format();
  EXPECT_EQ(format.label_shape, tensor::Shape{2});
  EXPECT_EQ(format.classes, 2) << "a score for each";
  EXPECT_THAT(format.label_names, ElementsAre("Edema", "Hernia"));
  EXPECT_EQ(splits->train->size(), 2u);
  Tensor inputs({2, 2}, DType::kF32), labels({2, 2}, DType::kI32);
  const uint32_t rows[] = {1, 0};
  ASSERT_TRUE(splits->train->Fill(rows, inputs, labels).ok());
  EXPECT_THAT(inputs.span<float>(), ElementsAre(3, 4, 1, 2));
  EXPECT_THAT(labels.span<int32_t>(), ElementsAre(1, 1, 0, 1));
}

TEST(CsvDatasetTest, LabelsWithoutAHeaderHaveTheirNumbers) {
  CsvData config = TwoLabels();
  config.header = false;
  const auto splits = LoadContent("1,0,1,2\n", config);
  ASSERT_TRUE(splits.ok()) << Message(splits.status());
  EXPECT_THAT(splits->train->format().label_names, ElementsAre("0", "1"));
}

TEST(CsvDatasetTest, NamesALabelThatNeitherHoldsNorDoesNot) {
  EXPECT_EQ(ErrorOf("a,l,m,b\n1,0,2,3\n", TwoLabels()),
            "data.txt:2: label 2 in column 2 is neither 0 nor 1 (2 labels)");
  EXPECT_EQ(ErrorOf("a,l,m\n1,0,1\n", TwoLabels()),
            "data.txt:1: 3 columns, but 2 labels and a sample of shape [2] need 4");
}

TEST(CsvDatasetTest, NamesFileAndLineOfAMistake) {
  const std::string head = "l,a,b\n0,1,2\n";
  EXPECT_EQ(ErrorOf(head + "0,x,2\n"), "data.txt:3: 'x' in column 1 is not a number");
  EXPECT_EQ(ErrorOf(head + "0,1,\n"), "data.txt:3: '' in column 2 is not a number");
  EXPECT_EQ(ErrorOf(head + "0,1.5.2,2\n"), "data.txt:3: '1.5.2' in column 1 is not a number");
  EXPECT_THAT(ErrorOf(head + "0,nan,2\n"), HasSubstr("data.txt:3: 'nan' in column 1"));
  EXPECT_THAT(ErrorOf(head + "0,1e60,2\n"), HasSubstr("is not finite"));
  EXPECT_EQ(ErrorOf(head + "0,1,1e400\n"), "data.txt:3: '1e400' in column 2 is out of range");
  EXPECT_EQ(ErrorOf(head + "0,\"1\",2\n"), "data.txt:3: '\"1\"' in column 1 is not a number");
  EXPECT_EQ(ErrorOf(head + "0,0x1p3,2\n"), "data.txt:3: '0x1p3' in column 1 is not a number");
  EXPECT_EQ(ErrorOf(head + "99999999999999999999,1,2\n"),
            "data.txt:3: label '99999999999999999999' in column 0 is not a whole number");
  EXPECT_EQ(ErrorOf(head + "1.0,1,2\n"),
            "data.txt:3: label '1.0' in column 0 is not a whole number");
  EXPECT_EQ(ErrorOf(head + "3,1,2\n"), "data.txt:3: label 3 is not in 0..2 (3 classes)");
  EXPECT_EQ(ErrorOf(head + "-1,1,2\n"), "data.txt:3: label -1 is not in 0..2 (3 classes)");
}

TEST(CsvDatasetTest, NamesALineWithTheWrongNumberOfColumns) {
  EXPECT_EQ(ErrorOf("l,a,b\n0,1,2\n0,1\n"),
            "data.txt:3: 2 columns, but a label and a sample of shape [2] need 3");
  EXPECT_THAT(ErrorOf("l,a,b,c\n0,1,2\n"), HasSubstr("data.txt:1: 4 columns"));
  EXPECT_THAT(ErrorOf("l,a,b\n0,1,2\n\n0,1,2\n"), HasSubstr("data.txt:3: 0 columns"));
}

TEST(CsvDatasetTest, RefusesAnEmptyFileAndOneWithoutSamples) {
  EXPECT_EQ(ErrorOf(""), "data.txt:1: the file is empty");
  EXPECT_EQ(ErrorOf("l,a,b\n"), "data.txt:2: no samples after the header");
  EXPECT_EQ(ErrorOf("\n\n"), "data.txt:1: no samples after the header");
}

TEST(CsvDatasetTest, QuotesABinaryFileBrieflyAndPrintably) {
  const std::string binary = "l,a,b\n\x01\x02" + std::string(100'000, '\xff') + ",1,2\n";
  const std::string message = ErrorOf(binary);
  EXPECT_THAT(message, HasSubstr("data.txt:2: label '??"));
  EXPECT_LT(message.size(), 120u);
}

TEST(CsvDatasetTest, RefusesSettingsThatDoNotFit) {
  CsvData all = Config();
  all.hold_out_every = 1;
  EXPECT_EQ(ErrorOf("l,a,b\n0,1,2\n", all),
            "data.txt: holdOutEvery 1 leaves none of 1 samples for training");
  CsvData column = Config();
  column.label_column = 3;
  EXPECT_THAT(ErrorOf("l,a,b\n0,1,2\n", column), HasSubstr("labelColumn 3 is past the last"));
  CsvData shape = Config();
  shape.shape = {std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::max(), 4};
  EXPECT_THAT(ErrorOf("l,a,b\n0,1,2\n", shape), HasSubstr("shape: extents"));
}

TEST(CsvDatasetTest, NamesAMissingFileAndADirectory) {
  const TemporaryFile file("");
  CsvData config = Config();
  config.path = "missing.csv";
  const auto missing = LoadCsv(config, file.workspace());
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Message(missing.status()), file.workspace() + "/missing.csv: no such data file");
  config.path = ".";
  EXPECT_THAT(Message(LoadCsv(config, file.workspace()).status()), HasSubstr("not a regular file"));
}

TEST(CsvDatasetTest, RefusesAFileOverTheBoundWithoutReadingIt) {
  const TemporaryFile file("l,a,b\n");
  std::filesystem::resize_file(file.path(), kMaxFileBytes + 1);  // sparse
  const auto splits = LoadCsv(Config(), file.workspace());
  EXPECT_THAT(Message(splits.status()), HasSubstr("a data file has at most"));
}

TEST(CsvDatasetTest, AnAbsolutePathNeedsNoWorkspace) {
  const TemporaryFile file("l,a,b\n0,1,2\n");
  CsvData config = Config();
  config.path = file.path();
  EXPECT_TRUE(LoadCsv(config, "/nowhere").ok());
}

TEST(CsvDatasetTest, TheFingerprintTellsOtherContentAndOtherSettings) {
  CsvData scaled = Config();
  scaled.scale = 2;
  const std::string a = LoadContent("l,a,b\n0,1,2\n")->fingerprint;
  EXPECT_EQ(a, LoadContent("l,a,b\n0,1,2\n")->fingerprint);
  EXPECT_NE(a, LoadContent("l,a,b\n0,1,3\n")->fingerprint);
  EXPECT_NE(a, LoadContent("l,a,b\n0,1,2\n", scaled)->fingerprint);
}

TEST(CsvDatasetTest, FillRefusesBuffersAndRowsThatDoNotFit) {
  const auto splits = LoadContent("l,a,b\n0,1,2\n");
  ASSERT_TRUE(splits.ok());
  Tensor inputs({1, 2}, DType::kF32), wide({1, 3}, DType::kF32), labels({1}, DType::kI32);
  const std::vector<uint32_t> good = {0}, past = {1};
  EXPECT_TRUE(splits->train->Fill(good, inputs, labels).ok());
  EXPECT_EQ(Message(splits->train->Fill(good, wide, labels)),
            "inputs are f32[1, 3], the samples need f32[1, 2]");
  EXPECT_EQ(splits->train->Fill(past, inputs, labels).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ringmaster::data
