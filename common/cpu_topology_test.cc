// Made-up machines, and how their cores are shared out.
#include "common/cpu_topology.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/temporary_folder.h"

namespace ringmaster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int> UpTo(int count) {
  std::vector<int> cpus(static_cast<size_t>(count));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

// A folder as /sys/devices/system is.
class MachineTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  // Two sockets, each a domain of so many cores. Linux numbers first one thread of every core of
  // both sockets, then their siblings.
  void WriteTwoSockets(int cores_each, int threads_a_core) {
    const int cores = 2 * cores_each;
    for (int cpu = 0; cpu < cores * threads_a_core; ++cpu) {
      std::string siblings;
      for (int thread = 0; thread < threads_a_core; ++thread)
        siblings += fmt::format("{}{}", thread == 0 ? "" : ",", cpu % cores + thread * cores);
      Write(fmt::format("cpu/cpu{}/topology/thread_siblings_list", cpu), siblings);
    }
    for (int domain = 0; domain < 2; ++domain) {
      std::string list;
      for (int thread = 0; thread < threads_a_core; ++thread) {
        const int first = domain * cores_each + thread * cores;
        list += fmt::format("{}{}-{}", thread == 0 ? "" : ",", first, first + cores_each - 1);
      }
      Write(fmt::format("node/node{}/cpulist", domain), list);
    }
    Write("cpu/online", fmt::format("0-{}", cores * threads_a_core - 1));
  }
  std::vector<Core> Read(const std::vector<int>& allowed) { return ReadCores(allowed, root()); }
  std::filesystem::path root() const { return folder_.path(); }

  const TemporaryFolder folder_ = TemporaryFolder::Make().value();
};

TEST_F(MachineTest, FindsSiblingsAndDomainsOfTwoSockets) {
  WriteTwoSockets(2, 2);
  EXPECT_THAT(Read(UpTo(8)),
              ElementsAre(Core{{0, 4}, 0}, Core{{1, 5}, 0}, Core{{2, 6}, 1}, Core{{3, 7}, 1}));
}

TEST_F(MachineTest, KeepsToTheProcessorsOfItsCpuset) {
  WriteTwoSockets(2, 2);
  EXPECT_THAT(Read({1, 3, 5}), ElementsAre(Core{{1, 5}, 0}, Core{{3}, 1}));
}

TEST_F(MachineTest, LeavesOutWhatIsOffline) {
  WriteTwoSockets(2, 2);
  Write("cpu/online", "0-4,6-7");
  EXPECT_THAT(Read(UpTo(8)),
              ElementsAre(Core{{0, 4}, 0}, Core{{1}, 0}, Core{{2, 6}, 1}, Core{{3, 7}, 1}));
}

TEST_F(MachineTest, BelievesItsCpusetWhereAllOfItWouldBeOffline) {
  WriteTwoSockets(2, 2);
  Write("cpu/online", "0-1");
  EXPECT_THAT(Read({6, 7}), ElementsAre(Core{{6}, 1}, Core{{7}, 1}));
}

TEST_F(MachineTest, PrefersTheNewerNameOfTheSiblings) {
  Write("cpu/cpu0/topology/core_cpus_list", "0-1");
  Write("cpu/cpu0/topology/thread_siblings_list", "0");
  EXPECT_THAT(Read({0, 1}), ElementsAre(Core{{0, 1}, 0}));
}

TEST_F(MachineTest, WithoutDomainsAllAreInOne) {
  for (int cpu = 0; cpu < 2; ++cpu)
    Write(fmt::format("cpu/cpu{}/topology/thread_siblings_list", cpu), fmt::format("{}", cpu));
  EXPECT_THAT(Read({0, 1}), ElementsAre(Core{{0}, 0}, Core{{1}, 0}));
}

TEST_F(MachineTest, WhereNothingCanBeReadEachProcessorIsACore) {
  EXPECT_THAT(Read({3, 7}), ElementsAre(Core{{3}, 0}, Core{{7}, 0}));
}

TEST_F(MachineTest, SiblingsThatDoNotNameTheProcessorAreNotBelieved) {
  Write("cpu/cpu0/topology/thread_siblings_list", "5-6");
  Write("cpu/cpu1/topology/thread_siblings_list", "what");
  EXPECT_THAT(Read({0, 1}), ElementsAre(Core{{0}, 0}, Core{{1}, 0}));
}

TEST_F(MachineTest, TwoTakersAreGivenADomainEach) {
  WriteTwoSockets(4, 2);
  std::vector<Core> free = Read(UpTo(16));
  const auto first = TakeCores(free, 3), second = TakeCores(free, 3);
  for (const Core& core : *first) EXPECT_EQ(core.domain, 0);
  for (const Core& core : *second) EXPECT_EQ(core.domain, 1);
  EXPECT_EQ(free.size(), 2u);
}

TEST_F(MachineTest, ATakerOfMoreThanADomainHasIsGivenBoth) {
  WriteTwoSockets(2, 1);
  std::vector<Core> free = Read(UpTo(4));
  EXPECT_THAT(*TakeCores(free, 3), ElementsAre(Core{{0}, 0}, Core{{1}, 0}, Core{{2}, 1}));
  EXPECT_FALSE(TakeCores(free, 2).has_value());
  EXPECT_THAT(free, ElementsAre(Core{{3}, 1}));
}

TEST_F(MachineTest, ThreadsThatComputeHaveCoresOfTheirOwnAndCommunicationWholeOnes) {
  WriteTwoSockets(4, 2);
  const auto placed = PlaceThreads(Read(UpTo(16)), 3, 1);
  EXPECT_THAT(placed->compute, ElementsAre(0, 1, 2));
  EXPECT_THAT(placed->communication, ElementsAre(3, 11));
}

TEST_F(MachineTest, SiblingsComputeWhereThereAreTooFewCores) {
  WriteTwoSockets(1, 2);
  EXPECT_THAT(PlaceThreads(Read(UpTo(4)), 4, 0)->compute, ElementsAre(0, 1, 2, 3));
  const auto placed = PlaceThreads(Read(UpTo(4)), 3, 1);
  EXPECT_THAT(placed->compute, ElementsAre(0, 1, 2));
  EXPECT_THAT(placed->communication, ElementsAre(3));
  EXPECT_FALSE(PlaceThreads(Read(UpTo(4)), 4, 1).has_value());
}

// A machine of up to 4 domains, 6 cores each and 3 hardware threads a core, some of them missing.
std::vector<Core> RandomCores(std::mt19937& random) {
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  std::vector<int> cpus = UpTo(4 * 6 * 3);
  std::ranges::shuffle(cpus, random);
  std::vector<Core> cores;
  for (int domain = draw(0, 3); domain >= 0; --domain) {
    for (int count = draw(1, 6); count > 0; --count) {
      Core core{.cpus = {}, .domain = domain};
      for (int threads = draw(1, 3); threads > 0; --threads) {
        core.cpus.push_back(cpus.back());
        cpus.pop_back();
      }
      std::ranges::sort(core.cpus);
      cores.push_back(std::move(core));
    }
  }
  SortCores(cores);
  return cores;
}

std::multiset<int> CpusOf(const std::vector<Core>& cores) {
  std::multiset<int> cpus;
  for (const Core& core : cores) cpus.insert(core.cpus.begin(), core.cpus.end());
  return cpus;
}

size_t MostOfADomain(const std::vector<Core>& cores) {
  std::map<int, size_t> counts;
  size_t most = 0;
  for (const Core& core : cores) most = std::max(most, ++counts[core.domain]);
  return most;
}

class SharingTest : public ::testing::Test {
 protected:
  static constexpr int kMachines = 500;
  const unsigned seed_ = std::random_device()();
  std::mt19937 random_{seed_};
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, fmt::format("seed {}", seed_)};
};

TEST_F(SharingTest, TakersNeverShareACoreAndStayInADomainWhereOneHasRoom) {
  for (int machine = 0; machine < kMachines; ++machine) {
    const std::vector<Core> all = RandomCores(random_);
    std::vector<Core> free = all;
    std::vector<Core> everybodys;
    while (!free.empty()) {
      const size_t count = std::uniform_int_distribution<size_t>(1, 5)(random_);
      const size_t most = MostOfADomain(free), left = free.size();
      const auto taken = TakeCores(free, count);
      ASSERT_EQ(taken.has_value(), count <= left);
      if (!taken) break;
      ASSERT_EQ(taken->size(), count);
      ASSERT_EQ(free.size(), left - count);
      ASSERT_GE(MostOfADomain(*taken), std::min(count, most));
      everybodys.insert(everybodys.end(), taken->begin(), taken->end());
    }
    everybodys.insert(everybodys.end(), free.begin(), free.end());
    SortCores(everybodys);
    ASSERT_EQ(everybodys, all);
  }
}

TEST_F(SharingTest, PartsAreAllThereIsAndOverlapOnlyWhereThereAreTooFew) {
  for (int machine = 0; machine < kMachines; ++machine) {
    const std::vector<Core> all = RandomCores(random_);
    const std::multiset<int> cpus = CpusOf(all);
    const size_t parts = std::uniform_int_distribution<size_t>(1, 30)(random_);
    std::multiset<int> joined;
    for (size_t part = 0; part < parts; ++part) {
      const std::vector<int> own = PartOf(all, part, parts);
      ASSERT_FALSE(own.empty());
      joined.insert(own.begin(), own.end());
    }
    if (parts <= cpus.size()) {
      ASSERT_EQ(joined, cpus);
    } else {
      ASSERT_EQ(std::set<int>(joined.begin(), joined.end()),
                std::set<int>(cpus.begin(), cpus.end()));
    }
  }
}

TEST_F(SharingTest, ThreadsNeverShareAProcessorAndSiblingsOnlyWhereCoresAreTooFew) {
  for (int machine = 0; machine < kMachines; ++machine) {
    const std::vector<Core> all = RandomCores(random_);
    const std::multiset<int> cpus = CpusOf(all);
    const size_t threads = std::uniform_int_distribution<size_t>(1, 12)(random_);
    const size_t communication = std::uniform_int_distribution<size_t>(0, 3)(random_);
    const auto placed = PlaceThreads(all, threads, communication);
    ASSERT_EQ(placed.has_value(), threads + communication <= cpus.size());
    if (!placed) continue;
    ASSERT_EQ(placed->compute.size(), threads);
    ASSERT_GE(placed->communication.size(), communication);
    std::vector<int> used = placed->compute;
    used.insert(used.end(), placed->communication.begin(), placed->communication.end());
    const std::set<int> distinct(used.begin(), used.end());
    ASSERT_EQ(distinct.size(), used.size());
    for (const int cpu : used) ASSERT_TRUE(cpus.contains(cpu));
    if (all.size() < threads + communication) continue;
    for (const Core& core : all) {
      ASSERT_LE(
          std::ranges::count_if(
              placed->compute, [&](int cpu) { return std::ranges::binary_search(core.cpus, cpu); }),
          1);
    }
  }
}

}  // namespace
}  // namespace ringmaster
