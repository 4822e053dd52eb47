#include "runtime/checkpoint/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/checkpoint/testing.h"

namespace ringmaster::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoaderTest : public ::testing::Test {
 protected:
  static CheckpointId Id(int world) { return {.step = 20, .round = 2, .world_size = world}; }
  std::filesystem::path Shard(int rank, int world) {
    return directory_.path() / ShardFileName(Id(world), rank);
  }

  CheckpointFolder directory_;
  TestState state_{5};
};

TEST_F(LoaderTest, LoadsTheSameTensorsFromAnyNumberOfFiles) {
  for (const int world : {1, 2, 3, 4, 7}) {
    const CheckpointRef ref = WriteCheckpoint(directory_.path(), Id(world), state_);
    const auto loaded = Load(directory_.path(), ref);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->metadata().at("step"), "20");
    for (const TensorView& tensor : state_.tensors()) {
      const TensorView* found = loaded->Find(tensor.name);
      ASSERT_NE(found, nullptr) << tensor.name << " of " << world;
      EXPECT_EQ(found->shape, tensor.shape);
      EXPECT_TRUE(std::equal(found->data.begin(), found->data.end(), tensor.data.begin(),
                             tensor.data.end()));
    }
    EXPECT_EQ(loaded->Find("other"), nullptr);
  }
}

TEST_F(LoaderTest, NamesATruncatedFile) {
  const CheckpointRef ref = WriteCheckpoint(directory_.path(), Id(2), state_);
  std::filesystem::resize_file(Shard(1, 2), std::filesystem::file_size(Shard(1, 2)) - 1);
  const auto loaded = Load(directory_.path(), ref);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(loaded.status()), AllOf(HasSubstr("rank-1-of-2"), HasSubstr("torn")));
}

TEST_F(LoaderTest, NamesTheFileWithAFlippedBit) {
  const CheckpointRef ref = WriteCheckpoint(directory_.path(), Id(2), state_);
  std::string content = Slurp(Shard(0, 2));
  content[content.size() - 3] ^= 0x10;
  Spill(Shard(0, 2), content);
  const auto loaded = Load(directory_.path(), ref);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(loaded.status()), AllOf(HasSubstr("rank-0-of-2"), HasSubstr("corrupt")));
}

TEST_F(LoaderTest, FindsAFlippedBitAnywhereInAFile) {
  const CheckpointRef ref = WriteCheckpoint(directory_.path(), Id(1), state_);
  const std::string whole = Slurp(Shard(0, 1));
  for (size_t i = 0; i < whole.size(); i += 5) {
    std::string content = whole;
    content[i] ^= 1;
    Spill(Shard(0, 1), content);
    EXPECT_EQ(Load(directory_.path(), ref).status().code(), absl::StatusCode::kDataLoss) << i;
  }
}

TEST_F(LoaderTest, RefusesAWholeCheckpointThatIsNotTheRecordedOne) {
  const CheckpointRef ref = WriteCheckpoint(directory_.path(), Id(2), state_);
  WriteCheckpoint(directory_.path(), Id(2), TestState(6));
  const auto loaded = Load(directory_.path(), ref);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(loaded.status()), HasSubstr("do not have the digest that was recorded"));
}

TEST_F(LoaderTest, NamesAMissingFileAndThatWorkersMustShareTheDirectory) {
  const CheckpointRef ref = WriteCheckpoint(directory_.path(), Id(3), state_);
  std::filesystem::remove(Shard(2, 3));
  const auto loaded = Load(directory_.path(), ref);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(loaded.status()),
              AllOf(HasSubstr("rank-2-of-3"), HasSubstr("1 of 3"), HasSubstr("share")));
}

TEST_F(LoaderTest, FindsWhatIsWholeTheNewestFirst) {
  const auto write = [&](int64_t step, int64_t round, int world) {
    const CheckpointId id{.step = step, .round = round, .world_size = world};
    WriteCheckpoint(directory_.path(), id, state_);
    return id;
  };
  const CheckpointId old = write(5, 1, 2), again = write(5, 3, 2), newest = write(10, 2, 1);
  write(20, 2, 3);
  std::filesystem::remove(directory_.path() / ShardFileName({20, 2, 3}, 1));
  Spill(directory_.path() / TemporaryName({30, 1, 1}, 0, kTestJob), "");
  Spill(directory_.path() / "notes.txt", "");
  const auto whole = WholeCheckpoints(directory_.path());
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_THAT(*whole, ElementsAre(newest, again, old));
}

TEST_F(LoaderTest, SaysWhichDirectoryCannotBeRead) {
  const auto whole = WholeCheckpoints(directory_.path() / "none");
  EXPECT_EQ(whole.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(whole.status()), HasSubstr("none"));
}

TEST_F(LoaderTest, LoadsOneOfWhichNoDigestWasRecorded) {
  WriteCheckpoint(directory_.path(), Id(2), state_);
  const auto loaded = Load(directory_.path(), Id(2));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_NE(loaded->Find("t4"), nullptr);
  std::string content = Slurp(Shard(1, 2));
  content[content.size() - 3] ^= 0x10;
  Spill(Shard(1, 2), content);
  EXPECT_EQ(Load(directory_.path(), Id(2)).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(LoaderTest, LoadsAFileOfAnotherProgram) {
  const auto path = directory_.path() / "model.safetensors";
  std::string content = EncodeHeader(state_.tensors(), {{"format", "pt"}});
  for (const TensorView& tensor : state_.tensors())
    content.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  Spill(path, content);
  const auto loaded = LoadFile(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->Find("t2")->shape, std::vector<int64_t>{40});
}

TEST_F(LoaderTest, ChecksTheChecksumThatAFileHas) {
  WriteCheckpoint(directory_.path(), Id(1), state_);
  EXPECT_TRUE(LoadFile(Shard(0, 1)).ok());
  std::string content = Slurp(Shard(0, 1));
  content[content.size() - 3] ^= 0x10;
  Spill(Shard(0, 1), content);
  EXPECT_THAT(Message(LoadFile(Shard(0, 1)).status()), HasSubstr("corrupt"));
}

}  // namespace
}  // namespace ringmaster::checkpoint
