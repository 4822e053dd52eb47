#include "launcher/oom_kills.h"

#include <filesystem>
#include <fstream>
#include <string_view>

#include <gtest/gtest.h>

#include "common/temporary_folder.h"

namespace ringmaster::launcher {
namespace {

class OomKillsTest : public ::testing::Test {
 protected:
  OomKillsTest() : folder_(*TemporaryFolder::Make()) {}

  void Write(const std::filesystem::path& name, std::string_view content) {
    const std::filesystem::path path = std::filesystem::path(folder_.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
  }
  std::int64_t Count() const { return OomKills(folder_.path()); }

  TemporaryFolder folder_;
};

TEST_F(OomKillsTest, ReadsControlGroupsOfVersion2) {
  Write("memory.events", "low 0\nhigh 7\nmax 12\noom 4\noom_kill 3\noom_group_kill 1\n");
  EXPECT_EQ(Count(), 3);
}

TEST_F(OomKillsTest, ReadsControlGroupsOfVersion1) {
  Write("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  EXPECT_EQ(Count(), 2);
}

TEST_F(OomKillsTest, CountsNoneWhereTheKernelDoesNotSay) {
  EXPECT_EQ(Count(), 0);
  Write("memory.events", "low 0\nhigh 0\n");
  Write("memory/memory.oom_control", "not what it was\n");
  EXPECT_EQ(Count(), 0);
}

}  // namespace
}  // namespace ringmaster::launcher
