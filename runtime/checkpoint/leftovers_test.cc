#include "runtime/checkpoint/leftovers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/checkpoint/testing.h"

namespace ringmaster::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

CheckpointId Id(int64_t step, int64_t round, int world = 1) {
  return {.step = step, .round = round, .world_size = world};
}

bool Exists(const CheckpointFolder& directory, const std::string& name) {
  return std::filesystem::exists(directory.path() / name);
}

TEST(LeftoversTest, RemovesTheFilesOfADroppedCheckpointAndNoOther) {
  CheckpointFolder directory;
  WriteCheckpoint(directory.path(), Id(10, 1, 2), TestState(1));
  WriteCheckpoint(directory.path(), Id(20, 1, 2), TestState(2));
  EXPECT_TRUE(RemoveCheckpoint(directory.path(), Id(10, 1, 2)).ok());
  EXPECT_TRUE(RemoveCheckpoint(directory.path(), Id(10, 1, 2)).ok()) << "gone already";
  EXPECT_THAT(directory.Names(),
              ElementsAre(ShardFileName(Id(20, 1, 2), 0), ShardFileName(Id(20, 1, 2), 1)));
}

TEST(LeftoversTest, RemovesWhatEarlierRoundsLeftBehind) {
  CheckpointFolder directory;
  const CheckpointRef existing = WriteCheckpoint(directory.path(), Id(10, 1), TestState(1));
  WriteCheckpoint(directory.path(), Id(20, 2), TestState(2));  // never reached status
  Spill(directory.path() / TemporaryName(Id(30, 2), 0, kTestJob), "half");
  const auto removed = RemoveLeftovers(directory.path(), kTestJob, 3, {&existing, 1});
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_THAT(*removed,
              ElementsAre(ShardFileName(Id(20, 2), 0), TemporaryName(Id(30, 2), 0, kTestJob)));
  EXPECT_THAT(directory.Names(), ElementsAre(ShardFileName(existing.id, 0)));
}

TEST(LeftoversTest, KnowsItsOwnFileByTheHeaderAlone) {
  CheckpointFolder directory;
  // So many tensors that the header is longer than what is read at first.
  const std::vector<float> one = {1};
  std::vector<TensorView> many;
  for (int i = 0; i < 2000; ++i) {
    many.push_back({.name = "a.rather.long.name.of.a.tensor." + std::to_string(i),
                    .shape = {1},
                    .data = std::as_bytes(std::span(one))});
  }
  ASSERT_TRUE(WriteShard(directory.path(), kTestJob, Id(20, 2), 0, many, {}).ok());
  ASSERT_TRUE(WriteShard(directory.path(), "default/other", Id(30, 2), 0, many, {}).ok());
  const std::filesystem::path mine = directory.path() / ShardFileName(Id(20, 2), 0);
  std::filesystem::resize_file(mine, std::filesystem::file_size(mine) - 100);
  const auto removed = RemoveLeftovers(directory.path(), kTestJob, 3, {});
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_THAT(*removed, ElementsAre(ShardFileName(Id(20, 2), 0)));
}

TEST(LeftoversTest, KeepsTheLatestRejectedCheckpointsUnderAnotherName) {
  CheckpointFolder directory;
  const CheckpointRef first = WriteCheckpoint(directory.path(), Id(10, 1, 2), TestState(1));
  const CheckpointRef second = WriteCheckpoint(directory.path(), Id(20, 2), TestState(2));
  Spill(directory.path() / RejectedName(Id(5, 1), 0, "default/other"), "another job's");
  ASSERT_TRUE(SetAside(directory.path(), kTestJob, {&first, 1}).ok());
  ASSERT_TRUE(SetAside(directory.path(), kTestJob, {&first, 1}).ok()) << "asked again";
  ASSERT_TRUE(SetAside(directory.path(), kTestJob, {}).ok());
  EXPECT_TRUE(Exists(directory, RejectedName(first.id, 0, kTestJob)));
  EXPECT_TRUE(Exists(directory, RejectedName(first.id, 1, kTestJob)));
  EXPECT_FALSE(Exists(directory, ShardFileName(first.id, 0)));
  const auto names = SetAside(directory.path(), kTestJob, {&second, 1});
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_THAT(*names, ElementsAre(RejectedName(second.id, 0, kTestJob)));
  ASSERT_TRUE(RemoveLeftovers(directory.path(), kTestJob, 9, {}).ok());
  EXPECT_EQ(directory.Names().size(), 2U) << "the latest, and the other job's";
  EXPECT_TRUE(Exists(directory, RejectedName(second.id, 0, kTestJob)));
}

TEST(LeftoversTest, LeavesEverybodyElsesFilesAlone) {
  CheckpointFolder directory;
  WriteCheckpoint(directory.path(), Id(10, 1), TestState(1), "default/other");
  WriteCheckpoint(directory.path(), Id(20, 3), TestState(2));  // of the current round
  Spill(directory.path() / "notes.txt", "mine");
  Spill(directory.path() / ShardFileName(Id(5, 1), 0), "not a safetensors file");
  Spill(directory.path() / TemporaryName(Id(30, 1), 0, "default/other"), "half");
  Spill(directory.path() / TemporaryName(Id(30, 3), 0, kTestJob), "being written");
  const auto removed = RemoveLeftovers(directory.path(), kTestJob, 3, {});
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_THAT(*removed, IsEmpty());
  EXPECT_EQ(directory.Names().size(), 6U);
}

TEST(LeftoversTest, HasNothingToDoWhereThereIsNoDirectory) {
  const auto removed = RemoveLeftovers("/nonexistent/checkpoints", kTestJob, 3, {});
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_THAT(*removed, IsEmpty());
}

}  // namespace
}  // namespace ringmaster::checkpoint
