#include "cli/run_directory.h"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "common/temporary_folder.h"

namespace ringmaster::cli {
namespace {

using ::testing::ElementsAre;

class RunDirectoryTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
  const std::filesystem::path root_ = folder_.path();
};

TEST_F(RunDirectoryTest, SecondRunOfAJobIsRefusedWhileTheFirstRuns) {
  RunDirectory first("digits", root_);
  RunDirectory second("digits", root_);
  EXPECT_FALSE(second.IsLocked().value());
  ASSERT_TRUE(first.Lock().ok());
  EXPECT_TRUE(second.IsLocked().value());
  const absl::Status status = second.Lock();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(Message(status).find("process " + std::to_string(::getpid())), std::string::npos);
}

TEST_F(RunDirectoryTest, SettingAsideKeepsOneEarlierRun) {
  RunDirectory run("digits", root_);
  ASSERT_TRUE(run.Lock().ok());
  for (const char* content : {"first", "second"}) {
    ASSERT_TRUE(WriteFileAtomically(run.journal(), content).ok());
    ASSERT_TRUE(run.SetAside().ok());
  }
  EXPECT_FALSE(run.HasJournal());
  EXPECT_EQ(ReadFile(root_ / ".ringmaster/digits.previous/store.journal").value(), "second");
}

TEST_F(RunDirectoryTest, JobsAreThoseWithAJournal) {
  for (const char* job : {"b", "a", "empty"}) ASSERT_TRUE(RunDirectory(job, root_).Lock().ok());
  for (const char* job : {"b", "a"})
    ASSERT_TRUE(WriteFileAtomically(RunDirectory(job, root_).journal(), "").ok());
  EXPECT_THAT(JobsUnder(root_), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace ringmaster::cli
