#include "runtime/device/available_memory.h"

#include <filesystem>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

#include "common/boot_id.h"
#include "common/temporary_folder.h"

namespace ringmaster::device {
namespace {

class AvailableMemoryTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& content) {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  void Link(const std::string& path, const std::string& target) {
    const std::filesystem::path link = root() + path;
    std::filesystem::create_directories(link.parent_path());
    std::filesystem::create_symlink(target, link);
  }
  std::string root() const { return folder_.path().string(); }
  std::optional<int64_t> Available() { return AvailableMemory(root()); }

  void MachineHas(int64_t kib) {
    Write("/proc/meminfo", "MemTotal:       24684096 kB\nMemAvailable:   " + std::to_string(kib) +
                               " kB\nBuffers: 1 kB\n");
  }

 private:
  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
};

TEST_F(AvailableMemoryTest, IsTheMachinesWithoutAControlGroup) {
  MachineHas(1000);
  EXPECT_EQ(Available(), 1000 * 1024);
}

TEST_F(AvailableMemoryTest, IsWhatTheControlGroupHasLeftWhereThatIsLess) {
  MachineHas(1000);
  Write("/sys/fs/cgroup/memory.max", "500000\n");
  Write("/sys/fs/cgroup/memory.current", "300000\n");
  Write("/sys/fs/cgroup/memory.stat", "anon 250000\ninactive_file 20000\nactive_file 7\n");
  EXPECT_EQ(Available(), 220'007);
  Write("/sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(Available(), 1000 * 1024);
}

TEST_F(AvailableMemoryTest, KnowsTheFirstVersionOfControlGroups) {
  MachineHas(1000);
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "400000\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "500000\n");
  Write("/sys/fs/cgroup/memory/memory.stat",
        "inactive_file 1\ntotal_inactive_file 140000\ntotal_active_file 10000\n");
  EXPECT_EQ(Available(), 50'000);
  Write("/sys/fs/cgroup/memory/memory.stat", "");
  EXPECT_EQ(Available(), 0);
}

// As the group of all processes, whose limit is the largest number, says it while it counts anew.
TEST_F(AvailableMemoryTest, TakesNoHarmFromMorePagesOfFilesThanAreUsed) {
  MachineHas(1000);
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  Write("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file 140000\n");
  EXPECT_EQ(Available(), 1000 * 1024);
}

TEST_F(AvailableMemoryTest, IsNeverMoreThanTheControlGroupsLimit) {
  EXPECT_FALSE(FindMemoryRoom(root()).has_value());
  MachineHas(1000);
  EXPECT_EQ(FindMemoryRoom(root())->available, 1000 * 1024);
  EXPECT_EQ(FindMemoryRoom(root())->most, std::numeric_limits<int64_t>::max());
  Write("/sys/fs/cgroup/memory.max", "500000\n");
  Write("/sys/fs/cgroup/memory.current", "300000\n");
  EXPECT_EQ(FindMemoryRoom(root())->available, 200'000);
  EXPECT_EQ(FindMemoryRoom(root())->most, 500'000);
}

TEST_F(AvailableMemoryTest, ThisMachinesBearsTheNameOfItsBoot) {
  const std::vector<MemoryPool> pools = MemoryPools();
  ASSERT_FALSE(pools.empty());
  const absl::StatusOr<std::string> boot = BootId();
  ASSERT_TRUE(boot.ok()) << boot.status();
  EXPECT_EQ(pools[0].owner, "machine");
  EXPECT_EQ(pools[0].name, *boot);
  EXPECT_EQ(pools[0].name.size(), 36U);  // a UUID
}

TEST_F(AvailableMemoryTest, NamesTheMachineByItsBootAndTheContainerByItsMountsToo) {
  MachineHas(1000);
  Write("/proc/sys/kernel/random/boot_id", "c0ffee\n");
  Write("/sys/fs/cgroup/memory.max", "500000\n");
  Write("/sys/fs/cgroup/memory.current", "300000\n");
  Link("/proc/self/ns/mnt", "mnt:[4026531840]");
  const std::vector<MemoryPool> pools = MemoryPools(root());
  ASSERT_EQ(pools.size(), 2U);
  EXPECT_EQ(pools[0].name, "c0ffee");
  EXPECT_EQ(pools[0].owner, "machine");
  EXPECT_EQ(pools[0].available, 1000 * 1024);
  EXPECT_EQ(pools[1].name, "c0ffee/mnt:[4026531840]");
  EXPECT_EQ(pools[1].owner, "container");
  EXPECT_EQ(pools[1].available, 200'000);
}

TEST_F(AvailableMemoryTest, HasOnePoolOfAContainerWithBothVersionsOfControlGroups) {
  Write("/sys/fs/cgroup/memory.max", "500000\n");
  Write("/sys/fs/cgroup/memory.current", "300000\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "400000\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "300000\n");
  ASSERT_EQ(MemoryPools(root()).size(), 1U);
  EXPECT_EQ(MemoryPools(root())[0].available, 100'000);
}

TEST_F(AvailableMemoryTest, HasNoNamesWhereTheSystemTellsNone) {
  MachineHas(1000);
  ASSERT_EQ(MemoryPools(root()).size(), 1U);
  EXPECT_EQ(MemoryPools(root())[0].name, "");
}

TEST_F(AvailableMemoryTest, CountsWhatThisProcessHasTouched) {
  Write("/proc/self/status",
        "VmRSS:\t 900 kB\nRssAnon:\t     700 kB\nRssFile:\t 200 kB\nVmSwap:\t 40 kB\n");
  EXPECT_EQ(OwnMemory(root()), 740 * 1024);
  const std::optional<int64_t> before = OwnMemory();
  ASSERT_TRUE(before.has_value());
  const std::vector<char> touched(50'000'000, 'x');
  EXPECT_GE(*OwnMemory(), *before + 45'000'000) << touched.back();
}

TEST_F(AvailableMemoryTest, IsUnknownWhereTheSystemDoesNotSay) {
  EXPECT_EQ(Available(), std::nullopt);
  EXPECT_EQ(OwnMemory(root()), std::nullopt);
}

}  // namespace
}  // namespace ringmaster::device
