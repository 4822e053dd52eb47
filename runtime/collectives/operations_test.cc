// Every operation of every type against a plain reference, in place and out of place.
#include <cctype>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/testing/references.h"

namespace ringmaster::collectives {
namespace {

using testing::CheckAllToAll;
using testing::CheckMoves;
using testing::CheckReductions;
using testing::CheckReductionsAndMoves;
using testing::ForEachType;
using testing::Group;
using testing::InputOf;
using testing::kReductions;
using testing::PartCounts;
using testing::ResultOf;
using testing::Same;
using testing::Wires;

constexpr size_t kSizes[] = {0, 1, 7, 1000};
constexpr size_t kSegmentBytes = 1024;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kMany = 50'000;
#else
constexpr size_t kMany = 1'000'000;
#endif

class OperationsTest : public ::testing::TestWithParam<std::tuple<int, Wires>> {
 protected:
  OperationsTest() : group_(std::get<0>(GetParam()), std::get<1>(GetParam())) {
    group_.options.segment_bytes = kSegmentBytes;
  }
  Group group_;
};

INSTANTIATE_TEST_SUITE_P(Worlds, OperationsTest,
                         ::testing::Combine(::testing::Range(1, 9),
                                            ::testing::ValuesIn(testing::kAllWires)),
                         [](const auto& info) {
                           return testing::NameOf(std::get<1>(info.param)) +
                                  std::to_string(std::get<0>(info.param));
                         });

TEST_P(OperationsTest, EveryReductionOfEveryTypeIsTheReferences) {
  group_.Run([](Communicator& comm) {
    for (const Reduction reduction : kReductions) {
      for (const size_t size : kSizes) {
        ForEachType([&]<typename T>(T) {
          SCOPED_TRACE(std::string(NameOf(reduction)) + " " + NameOf(ElementTypeOf<T>()));
          CheckReductions<T>(comm, reduction, size);
        });
      }
    }
  });
}

TEST_P(OperationsTest, AllreduceOfManyBytesGoesAroundTheRing) {
  group_.Run([](Communicator& comm) {
    for (const Reduction reduction : {Reduction::kSum, Reduction::kAverage, Reduction::kMin}) {
      ForEachType([&]<typename T>(T) {
        constexpr size_t kLarge = 9001;
        std::vector<T> data = InputOf<T>(reduction, comm.rank(), kLarge);
        ASSERT_TRUE(comm.Allreduce(reduction, data, data, "a").ok()) << comm.status();
        ASSERT_TRUE(Same(data, ResultOf<T>(reduction, comm.world(), kLarge)));
      });
    }
  });
}

TEST_P(OperationsTest, EveryMoveOfEveryTypeIsTheReferences) {
  group_.Run([](Communicator& comm) {
    for (const size_t size : kSizes) {
      ForEachType([&]<typename T>(T) {
        SCOPED_TRACE(NameOf(ElementTypeOf<T>()));
        CheckMoves<T>(comm, size);
        CheckAllToAll<T>(comm, size);
      });
    }
  });
}

class ForcedAlgorithmTest : public ::testing::TestWithParam<std::tuple<Algorithm, int>> {};

constexpr Algorithm kForced[] = {
    Algorithm::kRing,    Algorithm::kDirect, Algorithm::kDoubling,   Algorithm::kHalvingDoubling,
    Algorithm::kOneShot, Algorithm::kTree,   Algorithm::kDoubleTree, Algorithm::kTwoLevel};

std::string NameWithoutSigns(Algorithm algorithm) {
  std::string name = NameOf(algorithm);
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
}

std::string NameOfForced(const ::testing::TestParamInfo<std::tuple<Algorithm, int>>& info) {
  return NameWithoutSigns(std::get<0>(info.param)) + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Algorithms, ForcedAlgorithmTest,
                         ::testing::Combine(::testing::ValuesIn(kForced),
                                            ::testing::Values(2, 3, 4, 7)),
                         NameOfForced);

TEST_P(ForcedAlgorithmTest, EveryReductionAndBroadcastOfEveryTypeIsTheReferences) {
  const auto [algorithm, world] = GetParam();
  Group group(world);
  group.options.segment_bytes = kSegmentBytes;
  group.options.algorithm = algorithm;
  group.Run([](Communicator& comm) {
    // Two nodes that take turns, for what goes over two levels.
    ASSERT_TRUE(comm.Fit("node " + std::to_string(comm.rank() % 2)).ok()) << comm.status();
    for (const size_t size : {1, 7, 1000, 5003}) {
      SCOPED_TRACE(size);
      ForEachType([&]<typename T>(T) {
        SCOPED_TRACE(NameOf(ElementTypeOf<T>()));
        CheckReductionsAndMoves<T>(comm, size);
      });
    }
  });
}

class ForcedAlgorithmOverTcpTest : public ForcedAlgorithmTest {};

INSTANTIATE_TEST_SUITE_P(Algorithms, ForcedAlgorithmOverTcpTest,
                         ::testing::Combine(::testing::ValuesIn(kForced),
                                            ::testing::Values(2, 3, 5, 8, 9, 24)),
                         NameOfForced);

TEST_P(ForcedAlgorithmOverTcpTest, EveryReductionAndBroadcastIsTheReferences) {
  const auto [algorithm, world] = GetParam();
  Group group(world, Wires::kTcp);
  group.options.segment_bytes = kSegmentBytes;
  group.options.algorithm = algorithm;
  group.Run([](Communicator& comm) {
    ASSERT_TRUE(comm.Fit("node " + std::to_string(comm.rank() % 3)).ok()) << comm.status();
    CheckReductionsAndMoves<float>(comm, 7);
    CheckReductionsAndMoves<int64_t>(comm, 1000);
    CheckAllToAll<float>(comm, 100);
  });
}

// Over memory alone, which is the cheapest; the worlds above go over the others too.
class ManyRanksTest : public ::testing::TestWithParam<int> {
 protected:
  Group group_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Worlds, ManyRanksTest,
                         ::testing::Values(9, 10, 11, 12, 13, 14, 15, 16, 24, 32),
                         ::testing::PrintToStringParamName());

TEST_P(ManyRanksTest, EveryOperationOfEveryTypeIsTheReferences) {
  group_.options.segment_bytes = kSegmentBytes;
  group_.Run([](Communicator& comm) {
    for (const size_t size : kSizes) {
      SCOPED_TRACE(size);
      ForEachType([&]<typename T>(T) {
        SCOPED_TRACE(NameOf(ElementTypeOf<T>()));
        CheckReductionsAndMoves<T>(comm, size);
        CheckAllToAll<T>(comm, size);
      });
    }
  });
}

class ManyElementsTest : public ManyRanksTest {};

INSTANTIATE_TEST_SUITE_P(Worlds, ManyElementsTest,
                         ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
                                           24, 32),
                         ::testing::PrintToStringParamName());

// Every type at some worlds, and at all where `make soak` asks for it, which takes minutes. Else at
// the others every operation of one type, another one for each reduction and each world, so that
// all types have their turn there.
TEST_P(ManyElementsTest, EveryOperationIsTheReferences) {
  constexpr int kTypes = 7;
  const int world = GetParam();
  const bool all_types = world == 2 || world == 3 || world == 4 || world == 8 ||
                         std::getenv("RINGMASTER_TEST_EVERY_TYPE") != nullptr;
  group_.Run([&](Communicator& comm) {
    int number = 0;
    ForEachType([&]<typename T>(T) {
      SCOPED_TRACE(NameOf(ElementTypeOf<T>()));
      const int type = number++;
      int turn = world;
      const auto has_turn = [&] { return all_types || turn++ % kTypes == type; };
      for (const Reduction reduction : kReductions) {
        SCOPED_TRACE(NameOf(reduction));
        if (has_turn()) CheckReductions<T>(comm, reduction, kMany);
      }
      if (!has_turn()) return;
      CheckMoves<T>(comm, kMany);
      CheckAllToAll<T>(comm, kMany / static_cast<size_t>(world));
    });
  });
}

// Through every algorithm, as each has its own places where it adds.
class OperationsRangeTest : public ::testing::TestWithParam<Algorithm> {};

INSTANTIATE_TEST_SUITE_P(Algorithms, OperationsRangeTest, ::testing::ValuesIn(kForced),
                         [](const auto& info) { return NameWithoutSigns(info.param); });

TEST_P(OperationsRangeTest, AnAverageOfTheLargestOrTheSmallestNumbersIsThemselves) {
  for (const int world : {2, 3, 5}) {
    Group group(world);
    group.options.algorithm = GetParam();
    group.Run([](Communicator& comm) {
      const auto check = [&]<typename T>(T extreme) {
        SCOPED_TRACE(NameOf(ElementTypeOf<T>()));
        for (const size_t count : {size_t{1}, size_t{9001}}) {
          const std::vector<T> in(count, extreme);
          std::vector<T> out(count);
          ASSERT_TRUE(comm.Allreduce(Reduction::kAverage, in, out, "a").ok()) << comm.status();
          ASSERT_TRUE(Same(out, in));
          for (const std::vector<size_t>& counts : PartCounts(comm.world(), count)) {
            std::vector<T> mine(counts[static_cast<size_t>(comm.rank())]);
            ASSERT_TRUE(comm.ReduceScatter(Reduction::kAverage, in, counts, mine, "s").ok());
            ASSERT_TRUE(Same(mine, std::vector<T>(mine.size(), extreme)));
          }
          ASSERT_TRUE(comm.Reduce(Reduction::kAverage, 0, in, out, "r").ok());
          ASSERT_TRUE(Same(out, in));
        }
      };
      check(0x1p127f);
      check(0x1p1023);
      check(ToBFloat16(0x1p127f));
      check(ToFloat16(60'000));
      check(ToFloat16(0x1p-24f));  // the smallest that there is: halved it would be none
    });
  }
}

}  // namespace
}  // namespace ringmaster::collectives
