// Who may wait by looking: what ranks may run on, and what is made of it.
#include "runtime/collectives/transport/shm/processors.h"

#include <bit>
#include <fstream>
#include <sched.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/temporary_folder.h"

namespace ringmaster::collectives::shm {
namespace {

Processors On(uint64_t first_sixty_four) {
  Processors processors;
  processors.allowed[0] = first_sixty_four;
  return processors;
}

Processors Limited(uint64_t limit, uint64_t group) {
  Processors processors = On(0xffff);
  processors.limit = limit;
  processors.group = group;
  return processors;
}

bool May(const Processors& own, const std::vector<Processors>& known, size_t unknown = 0) {
  return MayKeepOne(own, known, unknown);
}

TEST(ProcessorsTest, KeepsOneWhereThereAreAsManyAsRanks) {
  EXPECT_TRUE(May(On(3), {On(3)}));
  EXPECT_FALSE(May(On(3), {On(3), On(3)}));
  EXPECT_FALSE(May(On(1), {On(1)}));
}

TEST(ProcessorsTest, KeepsTheOneThatItIsBoundTo) {
  EXPECT_TRUE(May(On(1), {On(2), On(4), On(8)}));
  EXPECT_FALSE(May(On(1), {On(2), On(4), On(9)}));
}

TEST(ProcessorsTest, CountsRanksThatItDoesNotKnowAsThoseThatItKnows) {
  EXPECT_FALSE(May(On(3), {On(3)}, 2));
  EXPECT_TRUE(May(On(15), {On(15)}, 2));
  EXPECT_TRUE(May(On(1), {On(2)}, 2));
  EXPECT_FALSE(May(On(1), {}, 1));
}

TEST(ProcessorsTest, StaysWithinTheTimeOfItsControlGroup) {
  EXPECT_TRUE(May(Limited(2, 7), {Limited(2, 7)}));
  EXPECT_FALSE(May(Limited(1, 7), {Limited(1, 7)}));
  EXPECT_TRUE(May(Limited(1, 7), {Limited(1, 8)}));
  EXPECT_FALSE(May(Limited(0, 7), {Limited(1, 8)}));
}

class OwnProcessorsTest : public ::testing::Test {
 protected:
  void Write(const std::string& file, const std::string& text) {
    const auto path = folder_.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  Processors Read() { return OwnProcessors(folder_.path() / "membership", folder_.path() / "g"); }

  TemporaryFolder folder_ = *TemporaryFolder::Make();
};

TEST_F(OwnProcessorsTest, AreThoseOfTheThreadsAffinity) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  int found = 0;
  for (const uint64_t word : Read().allowed) found += std::popcount(word);
  EXPECT_EQ(found, CPU_COUNT(&set));
}

TEST_F(OwnProcessorsTest, AreLimitedByTheTightestGroupAbove) {
  Write("membership", "1:cpu:/old\n0::/pod/container\n");
  Write("g/pod/container/cpu.max", "800000 100000\n");
  const Processors inner = Read();
  EXPECT_EQ(inner.limit, 8u);
  Write("g/pod/cpu.max", "250000 100000\n");
  const Processors outer = Read();
  EXPECT_EQ(outer.limit, 2u);
  EXPECT_NE(outer.group, inner.group);
}

TEST_F(OwnProcessorsTest, AreNotLimitedWhereNothingSaysSo) {
  EXPECT_EQ(Read().limit, Processors::kNoLimit);
  Write("membership", "0::/\n");
  Write("g/cpu.max", "max 100000\n");
  EXPECT_EQ(Read().limit, Processors::kNoLimit);
  Write("g/cpu.max", "nonsense");
  EXPECT_EQ(Read().limit, Processors::kNoLimit);
  Write("g/cpu.max", "400000 100000\n");
  EXPECT_EQ(Read().limit, 4u);
}

}  // namespace
}  // namespace ringmaster::collectives::shm
