#include "cli/logs_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/file.h"
#include "common/temporary_folder.h"

namespace ringmaster::cli {
namespace {

using ::testing::ElementsAre;

TEST(LogsCommandTest, LastLinesCountsWholeLines) {
  EXPECT_EQ(LastLines("a\nb\nc\n", 2), "b\nc\n");
  EXPECT_EQ(LastLines("a\nb\nc", 1), "c");
  EXPECT_EQ(LastLines("a\nb\n", 5), "a\nb\n");
  EXPECT_EQ(LastLines("a\nb\n", -1), "a\nb\n");
  EXPECT_EQ(LastLines("a\nb\n", 0), "");
  EXPECT_EQ(LastLines("", 3), "");
}

TEST(LogsCommandTest, FilesAreOrderedByIndexAndIncarnationAsNumbers) {
  const TemporaryFolder temporary = TemporaryFolder::Make().value();
  const std::filesystem::path folder = temporary.path();
  for (const char* name :
       {"d-10-0.log", "d-2-1.log", "d-2-0.log", "d-x-0.log", "other-0-0.log", "d-3-0.txt"}) {
    ASSERT_TRUE(WriteFileAtomically(folder / name, "").ok());
  }
  EXPECT_THAT(LogFiles(folder, "d", std::nullopt),
              ElementsAre(folder / "d-2-0.log", folder / "d-2-1.log", folder / "d-10-0.log"));
  EXPECT_THAT(LogFiles(folder, "d", 10), ElementsAre(folder / "d-10-0.log"));
}

}  // namespace
}  // namespace ringmaster::cli
