#include "runtime/checkpoint/async_writer.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "common/sha256.h"
#include "common/status.h"
#include "runtime/checkpoint/loader.h"
#include "runtime/checkpoint/testing.h"

namespace {

std::atomic<int> syncs_until_timeout{0};  // the last of so many calls of fsync fails; 0: none does

}  // namespace

// In the place of the C library's, to fail as a disk over the network does.
extern "C" int fsync(int fd) {
  if (syncs_until_timeout > 0 && --syncs_until_timeout == 0) {
    errno = ETIMEDOUT;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}

namespace ringmaster::checkpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Duration kDeadline = std::chrono::seconds(30);

CheckpointId Id(int64_t step) {
  return {.step = step, .round = 1, .world_size = 1};
}

// What a writer reported, readable after Flush.
class Results {
 public:
  std::function<void(const WriteResult&)> Sink() {
    return [this](const WriteResult& result) {
      std::lock_guard lock(mutex_);
      results_.push_back(result);
    };
  }
  std::vector<WriteResult> Take() {
    std::lock_guard lock(mutex_);
    return std::exchange(results_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<WriteResult> results_;
};

// Makes the disk refuse files of more than `bytes`, as a quota does, while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    old_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_{};
  void (*old_handler_)(int) = nullptr;
};

TEST(AsyncWriterTest, ReportsTheDigestOfTheFileThatItWrote) {
  CheckpointFolder directory;
  Results results;
  AsyncWriter writer(directory.path() / "made" / "when" / "missing", kTestJob, results.Sink());
  const TestState state(1);
  ASSERT_TRUE(writer.Submit(Id(20), 0, state.tensors(), {{"step", "20"}}, kDeadline).ok());
  ASSERT_TRUE(writer.Flush(kDeadline).ok());
  const std::vector<WriteResult> written = results.Take();
  ASSERT_EQ(written.size(), 1U);
  ASSERT_TRUE(written[0].status.ok()) << written[0].status;
  const std::string file =
      Slurp(directory.path() / "made" / "when" / "missing" / ShardFileName(Id(20), 0));
  EXPECT_EQ(written[0].digest, Hex(Sha256Of(file)));
  EXPECT_EQ(written[0].bytes, static_cast<int64_t>(file.size()));
}

TEST(AsyncWriterTest, WritesTheValuesOfTheMomentOfSubmission) {
  CheckpointFolder directory;
  Results results;
  AsyncWriter writer(directory.path(), kTestJob, results.Sink());
  std::vector<float> weights(1000, 1.0F);
  const TensorView tensor{.name = "w", .shape = {1000}, .data = std::as_bytes(std::span(weights))};
  for (int step = 1; step <= 5; ++step) {
    std::fill(weights.begin(), weights.end(), static_cast<float>(step));
    ASSERT_TRUE(writer.Submit(Id(step), 0, {&tensor, 1}, {}, kDeadline).ok());
  }
  std::fill(weights.begin(), weights.end(), -1.0F);
  ASSERT_TRUE(writer.Flush(kDeadline).ok());
  int step = 0;
  for (const WriteResult& result : results.Take()) {
    EXPECT_EQ(result.id.step, ++step) << "in the order of submission";
    const std::string digests[] = {result.digest};
    const auto loaded =
        Load(directory.path(), {.id = result.id, .digest = CombinedDigest(digests)});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    float value = 0;
    std::memcpy(&value, loaded->Find("w")->data.data(), sizeof value);
    EXPECT_EQ(value, static_cast<float>(step));
  }
  EXPECT_EQ(step, 5);
}

TEST(AsyncWriterTest, ReportsADiskThatRefusesAndKeepsTheCheckpointBefore) {
  CheckpointFolder directory;
  Results results;
  AsyncWriter writer(directory.path(), kTestJob, results.Sink());
  const std::vector<float> weights(1 << 16, 1.0F);
  const TensorView small{
      .name = "w", .shape = {4}, .data = std::as_bytes(std::span(weights).first(4))};
  const TensorView large{
      .name = "w", .shape = {1 << 16}, .data = std::as_bytes(std::span(weights))};
  ASSERT_TRUE(writer.Submit(Id(1), 0, {&small, 1}, {}, kDeadline).ok());
  ASSERT_TRUE(writer.Flush(kDeadline).ok());
  {
    const FileSizeLimit limit(100'000);
    ASSERT_TRUE(writer.Submit(Id(2), 0, {&large, 1}, {}, kDeadline).ok());
    ASSERT_TRUE(writer.Flush(kDeadline).ok());
  }
  ASSERT_TRUE(writer.Submit(Id(3), 0, {&large, 1}, {}, kDeadline).ok());
  ASSERT_TRUE(writer.Flush(kDeadline).ok());
  const std::vector<WriteResult> written = results.Take();
  ASSERT_EQ(written.size(), 3U);
  EXPECT_TRUE(written[0].status.ok());
  EXPECT_EQ(written[1].status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Message(written[1].status), HasSubstr("step-2-round-1-rank-0-of-1"));
  EXPECT_TRUE(written[2].status.ok()) << "the disk has room again";
  EXPECT_THAT(directory.Names(), ElementsAre(ShardFileName(Id(1), 0), ShardFileName(Id(3), 0)));
}

TEST(AsyncWriterTest, LeavesACheckpointOutWhenTheDiskHangs) {
  CheckpointFolder directory;
  HangingFile disk(directory.path() / TemporaryName(Id(1), 0, kTestJob));
  Results results;
  AsyncWriter writer(directory.path(), kTestJob, results.Sink());
  const TestState state(1);
  for (const int step : {1, 2}) {
    ASSERT_TRUE(writer.Submit(Id(step), 0, state.tensors(), {}, kDeadline).ok());
  }
  const absl::Status third =
      writer.Submit(Id(3), 0, state.tensors(), {}, std::chrono::milliseconds(20));
  EXPECT_EQ(third.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Message(third), HasSubstr("not on disk yet"));
  EXPECT_EQ(writer.Flush(std::chrono::milliseconds(20)).code(),
            absl::StatusCode::kDeadlineExceeded);
  disk.LetGo();
  ASSERT_TRUE(writer.Flush(kDeadline).ok());
  const std::vector<WriteResult> written = results.Take();
  ASSERT_EQ(written.size(), 2U);
  EXPECT_FALSE(written[0].status.ok());
  EXPECT_TRUE(written[1].status.ok()) << written[1].status;
}

TEST(AsyncWriterTest, TellsADiskThatTimedOutFromACheckpointThatIsNotOnDiskYet) {
  for (const int sync : {1, 2}) {  // the file's and the directory's
    SCOPED_TRACE(sync);
    CheckpointFolder directory;
    Results results;
    AsyncWriter writer(directory.path(), kTestJob, results.Sink());
    const TestState state(1);
    syncs_until_timeout = sync;
    EXPECT_TRUE(writer.Submit(Id(1), 0, state.tensors(), {}, kDeadline).ok());
    EXPECT_TRUE(writer.Flush(kDeadline).ok());
    EXPECT_EQ(syncs_until_timeout.exchange(0), 0);
    const std::vector<WriteResult> written = results.Take();
    ASSERT_EQ(written.size(), 1U);
    EXPECT_EQ(written[0].status.code(), absl::StatusCode::kUnavailable) << written[0].status;
    EXPECT_THAT(Message(written[0].status), HasSubstr("timed out"));
  }
}

TEST(AsyncWriterTest, ReportsADirectoryThatCannotBeMade) {
  CheckpointFolder directory;
  Spill(directory.path() / "file", "in the way");
  Results results;
  AsyncWriter writer(directory.path() / "file" / "checkpoints", kTestJob, results.Sink());
  ASSERT_TRUE(writer.Submit(Id(1), 0, TestState(1).tensors(), {}, kDeadline).ok());
  ASSERT_TRUE(writer.Flush(kDeadline).ok());
  const std::vector<WriteResult> written = results.Take();
  ASSERT_EQ(written.size(), 1U);
  EXPECT_FALSE(written[0].status.ok());
}

}  // namespace
}  // namespace ringmaster::checkpoint
