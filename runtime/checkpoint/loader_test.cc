#include "runtime/checkpoint/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/checkpoint/testing.h"

namespace ringmaster::checkpoint {
namespace {

using ::testing::AllOf;
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

}  // namespace
}  // namespace ringmaster::checkpoint
