// Every algorithm against a plain reference, at many numbers of ranks and sizes.
#include <algorithm>
#include <barrier>
#include <bit>
#include <chrono>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/collectives/algorithms/doubling.h"
#include "runtime/collectives/algorithms/tree.h"
#include "runtime/collectives/algorithms/two_level.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/reduce.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives {
namespace {

using testing::Group;

constexpr size_t kSegmentBytes = 512;  // so that a thousand numbers are several pieces

// Whole numbers, so that every order of addition gives the same sum.
std::vector<float> Values(int rank, size_t size) {
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i)
    values[i] = static_cast<float>((i * 7 + static_cast<size_t>(rank) * 13) % 64);
  return values;
}

std::vector<float> Sum(int world, size_t size) {
  std::vector<float> sum(size);
  for (int rank = 0; rank < world; ++rank) {
    const std::vector<float> values = Values(rank, size);
    for (size_t i = 0; i < size; ++i) sum[i] += values[i];
  }
  return sum;
}

void CheckAllreduce(Communicator& comm, size_t size) {
  const std::vector<float> in = Values(comm.rank(), size);
  const std::vector<float> want = Sum(comm.world(), size);
  std::vector<float> out(size, -1.0f);
  ASSERT_TRUE(comm.Allreduce(Reduction::kSum, in, out, "a").ok()) << comm.status();
  ASSERT_EQ(out, want) << "rank " << comm.rank() << ", " << size << " numbers";
  out = in;
  ASSERT_TRUE(comm.Allreduce(Reduction::kSum, out, out, "a").ok()) << comm.status();
  ASSERT_EQ(out, want) << "in place, rank " << comm.rank() << ", " << size << " numbers";
}

void CheckReduce(Communicator& comm, size_t size) {
  const std::vector<float> in = Values(comm.rank(), size);
  for (const int root : {0, comm.world() - 1}) {
    std::vector<float> out = in;
    ASSERT_TRUE(comm.Reduce(Reduction::kSum, root, out, out, "r").ok()) << comm.status();
    ASSERT_EQ(out, comm.rank() == root ? Sum(comm.world(), size) : in) << size << " numbers";
  }
}

void CheckBroadcast(Communicator& comm, size_t size) {
  for (const int root : {0, comm.world() / 2}) {
    std::vector<float> data = comm.rank() == root ? Values(5, size) : std::vector<float>(size);
    ASSERT_TRUE(comm.Broadcast(root, data, "b").ok()) << comm.status();
    ASSERT_EQ(data, Values(5, size)) << size << " numbers from rank " << root;
  }
}

class AlgorithmTest : public ::testing::TestWithParam<int> {
 protected:
  void Run(Algorithm algorithm, const std::function<void(Communicator&)>& body) {
    SCOPED_TRACE(NameOf(algorithm));
    group_.options.segment_bytes = kSegmentBytes;
    group_.options.algorithm = algorithm;
    group_.Run(body);
  }
  Group group_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Worlds, AlgorithmTest,
                         ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
                                           24, 32));

TEST_P(AlgorithmTest, EveryAllreduceIsTheReferences) {
  for (const Algorithm algorithm : AlgorithmsOf(OperationKind::kAllreduce)) {
    Run(algorithm, [](Communicator& comm) {
      for (const size_t size : {0, 1, 7, 1000}) CheckAllreduce(comm, size);
    });
  }
}

TEST_P(AlgorithmTest, EveryReduceIsTheReferences) {
  for (const Algorithm algorithm : AlgorithmsOf(OperationKind::kReduce)) {
    Run(algorithm, [](Communicator& comm) {
      for (const size_t size : {0, 1, 7, 1000}) CheckReduce(comm, size);
    });
  }
}

TEST_P(AlgorithmTest, EveryBroadcastIsTheReferences) {
  for (const Algorithm algorithm : AlgorithmsOf(OperationKind::kBroadcast)) {
    Run(algorithm, [](Communicator& comm) {
      for (const size_t size : {0, 1, 7, 1000}) CheckBroadcast(comm, size);
    });
  }
}

// Ranks on nodes of unequal size, in no order, by each of the algorithms between the nodes.
TEST_P(AlgorithmTest, TwoLevelsServeAnySpreadOverNodes) {
  std::vector<std::string> machines;
  for (int rank = 0; rank < GetParam(); ++rank)
    machines.push_back("machine " + std::to_string(rank * rank % 5));
  std::vector<std::string> halves;
  for (int rank = 0; rank < GetParam(); ++rank) halves.push_back(rank % 2 == 0 ? "even" : "odd");
  for (const NodeMap& nodes : {NodeMap(machines), NodeMap(halves)}) {
    for (const Algorithm between :
         {Algorithm::kDoubling, Algorithm::kHalvingDoubling, Algorithm::kRing}) {
      Run(Algorithm::kTwoLevel, [&](Communicator& comm) {
        const Method method{Algorithm::kTwoLevel, between, kSegmentBytes, &nodes};
        for (const size_t size : {0, 1, 7, 1000}) {
          Operation operation;
          operation.kind = OperationKind::kAllreduce;
          operation.name = "two levels";
          std::vector<float> data = Values(comm.rank(), size);
          const absl::Status reduced = comm.Run(operation, [&](Transport& t) {
            return Allreduce(t, method, Reduction::kSum, data, data);
          });
          ASSERT_TRUE(reduced.ok()) << reduced;
          ASSERT_EQ(data, Sum(comm.world(), size));
          const int root = comm.world() / 2;
          data = comm.rank() == root ? Values(5, size) : std::vector<float>(size);
          operation.kind = OperationKind::kBroadcast;
          const absl::Status sent =
              comm.Run(operation, [&](Transport& t) { return Broadcast(t, method, root, data); });
          ASSERT_TRUE(sent.ok()) << sent;
          ASSERT_EQ(data, Values(5, size));
        }
      });
    }
  }
}

// In which the order of addition shows, of equal numbers only in bits, and NaNs of two kinds.
std::vector<float> InexactValues(int rank, size_t size) {
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i) {
    const size_t number = i * 7 + static_cast<size_t>(rank) * 13;
    values[i] = 1.0f / static_cast<float>(1 + number % 97);
    if (i % 5 == 1) values[i] = number % 2 == 0 ? 0.0f : -0.0f;
    if (i % 50 == 2 && number % 3 == 0)
      values[i] = std::bit_cast<float>(number % 2 == 0 ? 0x7fc00001u : 0xffc00123u);
  }
  return values;
}

TEST(AlgorithmBitsTest, EveryRankGetsTheSameByEveryAllreduceInPlaceOrNot) {
  constexpr size_t kSize = 1003;
  for (const auto wires : {testing::Wires::kShared, testing::Wires::kTcp, testing::Wires::kMixed}) {
    for (const Algorithm algorithm : AlgorithmsOf(OperationKind::kAllreduce)) {
      for (const int world : {2, 3, 4, 6}) {
        SCOPED_TRACE(std::string(NameOf(algorithm)) + ", " + NameOf(wires) + ", " +
                     std::to_string(world) + " ranks");
        std::map<std::string, std::vector<float>> of_rank_0;
        std::barrier told(world);
        Group group(world, wires);
        group.options.segment_bytes = kSegmentBytes;
        group.options.algorithm = algorithm;
        group.Run([&](Communicator& comm) {
          // Two nodes, or two-level would be what goes between nodes of one rank each. Mixed wires
          // are memory within the one, and TCP between the two.
          if (algorithm == Algorithm::kTwoLevel) {
            const int apart = wires == testing::Wires::kMixed ? 3 : 2;
            EXPECT_TRUE(comm.Fit(comm.rank() % apart == 0 ? "a" : "b").ok()) << comm.status();
          }
          for (const auto reduction :
               {Reduction::kSum, Reduction::kAverage, Reduction::kMin, Reduction::kMax}) {
            const std::vector<float> in = InexactValues(comm.rank(), kSize);
            std::vector<float> apart(kSize);
            std::vector<float> in_place = in;
            EXPECT_TRUE(comm.Allreduce(reduction, in, apart, "a").ok()) << comm.status();
            EXPECT_TRUE(comm.Allreduce(reduction, in_place, in_place, "b").ok()) << comm.status();
            if (comm.rank() == 0) of_rank_0[NameOf(reduction)] = apart;
            told.arrive_and_wait();
            const auto bytes = std::as_bytes(std::span(of_rank_0.at(NameOf(reduction))));
            EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(apart)), bytes))
                << NameOf(reduction) << ", rank " << comm.rank();
            EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(in_place)), bytes))
                << NameOf(reduction) << " in place, rank " << comm.rank();
            told.arrive_and_wait();
          }
        });
      }
    }
  }
}

// Over TCP what is sent must stay as it is, so results need places of their own; memory mostly has
// a copy already, and each result is written over the one before.
TEST(AlgorithmWiresTest, ResultsAreTheReferencesWhateverKeepsWhatIsSent) {
  for (const auto wires : {testing::Wires::kTcp, testing::Wires::kMixed}) {
    for (const auto algorithm : {Algorithm::kDirect, Algorithm::kDoubling, Algorithm::kOneShot}) {
      for (const int world : {2, 3, 5, 8}) {
        SCOPED_TRACE(NameOf(wires) + ", " + NameOf(algorithm) + ", " + std::to_string(world) +
                     " ranks");
        Group group(world, wires);
        group.options.algorithm = algorithm;
        group.Run([](Communicator& comm) {
          for (const size_t size : {0, 1, 1000, 200'000}) CheckAllreduce(comm, size);
        });
      }
    }
  }
}

// More than the transport sends in one go, so that a result has no place of its own yet when it
// comes.
TEST(AlgorithmWiresTest, ResultsInPlaceAreTheReferencesWhereNotAllIsSentBeforeTheyCome) {
  for (const auto wires : {testing::Wires::kTcp, testing::Wires::kTls}) {
    for (const auto algorithm : {Algorithm::kDoubling, Algorithm::kOneShot}) {
      for (const int world : {2, 3}) {
        SCOPED_TRACE(NameOf(wires) + ", " + NameOf(algorithm) + ", " + std::to_string(world) +
                     " ranks");
        Group group(world, wires);
        group.options.algorithm = algorithm;
        group.Run([](Communicator& comm) { CheckAllreduce(comm, 700'000); });
      }
    }
  }
}

// A message has a largest size, an array has none.
constexpr size_t kLargestMessage = 4001;  // no whole number of elements

absl::Status DoublingInMessages(Communicator& comm, std::vector<float>& data) {
  return comm.Run(Operation(), [&](Transport& t) {
    return DoublingAllreduce(t, {Reduction::kSum, ElementType::kF32}, data, data, kLargestMessage);
  });
}

TEST(DoublingMessagesTest, TheirSumIsTheReferences) {
  for (const auto wires : {testing::Wires::kTcp, testing::Wires::kShared}) {
    Group group(5, wires);
    group.Run([](Communicator& comm) {
      for (const size_t size : {0, 1, 1000, 1001, 10'000}) {
        std::vector<float> data = Values(comm.rank(), size);
        const absl::Status reduced = DoublingInMessages(comm, data);
        ASSERT_TRUE(reduced.ok()) << reduced;
        ASSERT_EQ(data, Sum(comm.world(), size));
      }
    });
  }
}

// Rank 1 is made by hand: who sends other lengths is found out.
TEST(DoublingMessagesTest, NoneIsLongerThanItMayBe) {
  Group group(2);
  group.Run([](Communicator& comm) {
    std::vector<float> data = Values(comm.rank(), 1500);
    if (comm.rank() == 0) {
      EXPECT_TRUE(DoublingInMessages(comm, data).ok()) << comm.status();
      return;
    }
    std::vector<std::byte> got(6000);
    const std::span<const std::byte> mine = std::as_bytes(std::span(data));
    const absl::Status met = comm.Run(Operation(), [&](Transport& t) {
      t.PostSend(0, mine.first(4000));
      t.PostSend(0, mine.subspan(4000));
      t.PostReceive(0, std::span(got).first(4000));
      return t.Wait(t.PostReceive(0, std::span(got).subspan(4000)));
    });
    EXPECT_TRUE(met.ok()) << met;
  });
}

TEST(AlgorithmSizeTest, AMillionNumbersAreTheReferences) {
  Group group(5);
  for (const Algorithm algorithm : AlgorithmsOf(OperationKind::kAllreduce)) {
    SCOPED_TRACE(NameOf(algorithm));
    group.options.algorithm = algorithm;
    group.Run([](Communicator& comm) {
      CheckAllreduce(comm, 1'000'000);
      CheckReduce(comm, 1'000'000);
      CheckBroadcast(comm, 1'000'000);
    });
  }
}

// Follows the parents up, and sees that each parent has the rank among its children.
void ExpectTree(const std::vector<Tree>& places, int root) {
  size_t children = 0;
  for (size_t rank = 0; rank < places.size(); ++rank) {
    children += places[rank].children.size();
    int at = static_cast<int>(rank);
    for (size_t steps = 0; at != root; ++steps) {
      ASSERT_LT(steps, places.size()) << "rank " << rank << " hangs in a circle";
      const int parent = places[static_cast<size_t>(at)].parent;
      ASSERT_GE(parent, 0) << "rank " << at << " is a second root";
      const auto& siblings = places[static_cast<size_t>(parent)].children;
      ASSERT_EQ(std::count(siblings.begin(), siblings.end(), at), 1);
      at = parent;
    }
  }
  EXPECT_EQ(places[static_cast<size_t>(root)].parent, -1);
  EXPECT_EQ(children, places.size() - 1);
}

TEST(TreeShapeTest, EveryTreeReachesEveryRankOnce) {
  for (int world = 1; world <= 70; ++world) {
    SCOPED_TRACE("world " + std::to_string(world));
    for (const int root : {0, world / 3, world - 1}) {
      std::vector<Tree> binomial;
      std::vector<Tree> from[2];
      for (int rank = 0; rank < world; ++rank) {
        binomial.push_back(BinomialTree(world, root, rank));
        const auto both = DoubleTreeFrom(world, root, rank);
        for (size_t t = 0; t < 2; ++t) from[t].push_back(both[t]);
      }
      ExpectTree(binomial, root);
      for (const auto& tree : from) ExpectTree(tree, root);
    }
  }
}

TEST(TreeShapeTest, NobodyWorksInBothOfTwoTreesButOneRank) {
  for (int world = 2; world <= 70; ++world) {
    SCOPED_TRACE("world " + std::to_string(world));
    std::vector<Tree> trees[2];
    int in_both = 0;
    for (int rank = 0; rank < world; ++rank) {
      const auto both = DoubleTree(world, rank);
      for (size_t t = 0; t < 2; ++t) {
        trees[t].push_back(both[t]);
        EXPECT_LE(both[t].children.size(), 2u);
      }
      if (!both[0].children.empty() && !both[1].children.empty()) ++in_both;
    }
    EXPECT_LE(in_both, 1);
    for (const auto& tree : trees) {
      const auto root = std::find_if(tree.begin(), tree.end(),
                                     [](const Tree& place) { return place.parent < 0; });
      ExpectTree(tree, static_cast<int>(root - tree.begin()));
    }
  }
}

}  // namespace
}  // namespace ringmaster::collectives
