#include "common/temporary_folder.h"

#include <fstream>
#include <stdlib.h>
#include <string>

#include <gtest/gtest.h>
#include <sys/un.h>

namespace ringmaster {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolderTest, IsForThisUserAloneAndGoesWithAllThatIsInIt) {
  fs::path path;
  {
    const TemporaryFolder folder = TemporaryFolder::Make().value();
    path = folder.path();
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
    fs::create_directories(path / "a/b");
    std::ofstream(path / "a/b/file") << "x";
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryFolderTest, MovedFolderIsRemovedOnce) {
  TemporaryFolder first = TemporaryFolder::Make().value();
  const fs::path path = first.path();
  const TemporaryFolder second = std::move(first);
  first.Remove();  // NOLINT(bugprone-use-after-move): that it does nothing is what is tested
  EXPECT_TRUE(fs::exists(path));
  EXPECT_EQ(second.path(), path);
}

TEST(TemporaryFolderTest, LeavesRoomForASocketsNameAlsoWhereTmpdirIsLong) {
  const TemporaryFolder outer = TemporaryFolder::Make().value();
  const fs::path deep = outer.path() / std::string(100, 'x');
  fs::create_directories(deep);
  ::setenv("TMPDIR", deep.c_str(), 1);
  const auto inner = TemporaryFolder::Make();
  ::unsetenv("TMPDIR");
  ASSERT_TRUE(inner.ok()) << inner.status();
  EXPECT_LT(inner->path().string().size() + 16, sizeof(sockaddr_un::sun_path));
}

}  // namespace
}  // namespace ringmaster
