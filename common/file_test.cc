#include "common/file.h"

#include <signal.h>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "common/status.h"
#include "common/temporary_folder.h"

namespace ringmaster {
namespace {

class FileTest : public ::testing::Test {
 protected:
  size_t FilesInDirectory() const {
    return std::distance(std::filesystem::directory_iterator(directory_), {});
  }
  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
  const std::filesystem::path directory_ = folder_.path();
};

TEST_F(FileTest, AtomicWriteReplacesTheContentAndLeavesNoTemporaryFile) {
  ASSERT_TRUE(WriteFileAtomically(directory_ / "a", "one").ok());
  ASSERT_TRUE(WriteFileAtomically(directory_ / "a", "two").ok());
  EXPECT_EQ(ReadFile(directory_ / "a").value(), "two");
  EXPECT_EQ(FilesInDirectory(), 1u);
}

// RLIMIT_FSIZE makes the kernel refuse the bytes in the middle of the write, as a full disk does.
TEST_F(FileTest, FailedAtomicWriteLeavesTheOldContentAndNoTemporaryFile) {
  ASSERT_TRUE(WriteFileAtomically(directory_ / "a", "old").ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteFileAtomically(directory_ / "a", std::string(10000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(ReadFile(directory_ / "a").value(), "old");
  EXPECT_EQ(FilesInDirectory(), 1u);
}

TEST_F(FileTest, ReadingAMissingFileNamesIt) {
  const auto content = ReadFile(directory_ / "none");
  EXPECT_EQ(content.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(Message(content.status()).find("none"), std::string::npos);
}

TEST_F(FileTest, ReadingRefusesMoreThanTheBound) {
  ASSERT_TRUE(WriteFileAtomically(directory_ / "a", "12345").ok());
  EXPECT_EQ(ReadFile(directory_ / "a", 4).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FileTest, SecondLockOfAFileNamesItsHolder) {
  const auto first = FileLock::Acquire(directory_ / "lock", "process 12");
  ASSERT_TRUE(first.ok());
  const auto second = FileLock::Acquire(directory_ / "lock", "process 13");
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(Message(second.status()).find("process 12"), std::string::npos);
}

TEST_F(FileTest, LockIsFreeAgainWhenItsHolderIsGone) {
  EXPECT_FALSE(FileLock::IsHeld(directory_ / "lock").value()) << "there is no file yet";
  {
    const auto first = FileLock::Acquire(directory_ / "lock", "process 12");
    EXPECT_TRUE(FileLock::IsHeld(directory_ / "lock").value());
  }
  EXPECT_FALSE(FileLock::IsHeld(directory_ / "lock").value());
  EXPECT_TRUE(FileLock::Acquire(directory_ / "lock", "process 13").ok());
}

}  // namespace
}  // namespace ringmaster
