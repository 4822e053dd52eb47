// Communicator::Fit: what is measured of links, and that all ranks hold the same of it.
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/testing/relay.h"
#include "runtime/collectives/testing/tripwire.h"

namespace ringmaster::collectives {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::Group;

TEST(FitTest, MeasuresTheLinksAndEveryRankEndsWithTheSameNumbers) {
  Group group(5);
  std::vector<CostModel> models(5);
  group.Run([&](Communicator& comm) {
    const std::string machine = comm.rank() < 3 ? "one" : "two";
    ASSERT_TRUE(comm.Fit(machine).ok()) << comm.status();
    EXPECT_EQ(comm.selector().nodes().nodes(), 2);
    EXPECT_EQ(comm.selector().nodes().node_of(4), 1);
    models[static_cast<size_t>(comm.rank())] = comm.selector().model();
    std::vector<float> data(10'000, 1.0f);
    ASSERT_TRUE(comm.Allreduce(Reduction::kSum, data, data, "x").ok()) << comm.status();
    EXPECT_EQ(data, std::vector<float>(10'000, 5.0f));
  });
  for (const CostModel& model : models) {
    for (const auto& [link, first] :
         {std::pair(model.within, models[0].within), std::pair(model.between, models[0].between)}) {
      EXPECT_EQ(link.alpha, first.alpha);
      EXPECT_EQ(link.overhead, first.overhead);
      EXPECT_EQ(link.beta, first.beta);
      EXPECT_GT(link.alpha, 0);
      EXPECT_GT(link.beta, 0);
      EXPECT_LE(link.overhead, link.alpha);
    }
    EXPECT_EQ(model.gamma, models[0].gamma);
    EXPECT_NE(model.between.alpha, CostModel().between.alpha);
  }
}

// A link that rests before it lets a piece through takes so long for a small message, and so many
// times as long for a large one. The first of eight small ones may be there when a rank begins.
TEST(FitTest, FindsTheDelayAndTheRateOfALink) {
  constexpr size_t kPiece = 16 * 1024;
  constexpr milliseconds kRest{4};
  const double delay = std::chrono::duration<double>(kRest).count();
  const double rate = delay / kPiece;  // seconds a byte
  testing::Relay relay;
  Group group(2, testing::Wires::kTcp);
  group.options.members[1].address = relay.Open(group.options.members[1].address);
  const auto fitted = [&] {
    LinkCost link;
    group.Run([&](Communicator& comm) {
      ASSERT_TRUE(comm.Fit(std::to_string(comm.rank())).ok()) << comm.status();
      if (comm.rank() == 0) link = comm.selector().model().between;
    });
    return link;
  };
  const LinkCost fast = fitted();
  EXPECT_LT(fast.alpha, delay / 2);
  EXPECT_LT(fast.beta, rate / 2);
  relay.Chop(kPiece, kRest);
  const LinkCost slow = fitted();
  EXPECT_GT(slow.alpha, delay * 0.8);
  EXPECT_LT(slow.alpha, delay * 2.5);
  EXPECT_GT(slow.beta, rate * 0.6);
  EXPECT_LT(slow.beta, rate * 2.5);
}

TEST(FitTest, FindsRanksOfThisMachineOnOneNode) {
  Group group(3);
  group.Run([](Communicator& comm) {
    ASSERT_TRUE(comm.Fit().ok()) << comm.status();
    EXPECT_EQ(comm.selector().nodes().nodes(), 1);
  });
}

// How often the links are measured (fit.cc): so often at least, and at most.
constexpr uint64_t kFewestFitTurns = 3;
constexpr uint64_t kMostFitTurns = 10;

uint64_t FitTurns(const Communicator& comm) {
  return comm.stats().of(OperationKind::kBarrier).calls;
}

// The first of two nodes has a rank so slow that it is measured again and again; the ranks of the
// second find nothing of that.
TEST(FitTest, TakesAsManyTurnsOnEveryRankWhereOnlySomeFindSlowLinks) {
  constexpr microseconds kPerStep{20};  // four of which are one step of the ring
  Group group(4);
  ++group.options.round;
  testing::RunThreads(4, [&](int rank) {
    testing::Tripwire wire;
    const std::function<void()> slow = [&] {
      const auto until = steady_clock::now() + kPerStep;
      while (steady_clock::now() < until) continue;
      wire.at = wire.counted;
      wire.trip = slow;
    };
    wire.armed = true;
    wire.at = 0;
    wire.trip = slow;
    const auto comm = testing::OpenTripped(group.OptionsFor(rank), group.listener(rank),
                                           rank == 0 ? &wire : nullptr);
    ASSERT_TRUE(comm->Fit(rank < 2 ? "slow" : "fast").ok()) << comm->status();
    EXPECT_EQ(FitTurns(*comm), kMostFitTurns) << "rank " << rank;
  });
}

TEST(FitTest, TakesTheFewestTurnsWhereNoTwoRanksShareANode) {
  Group group(3);
  group.Run([](Communicator& comm) {
    ASSERT_TRUE(comm.Fit(std::to_string(comm.rank())).ok()) << comm.status();
    EXPECT_EQ(FitTurns(comm), kFewestFitTurns);
  });
}

// What ranks of one machine fitted, on these wires.
std::vector<LinkCost> LinksOf(int world, testing::Wires wires) {
  Group group(world, wires);
  std::vector<LinkCost> links(static_cast<size_t>(world));
  group.Run([&](Communicator& comm) {
    ASSERT_TRUE(comm.Fit().ok()) << comm.status();
    links[static_cast<size_t>(comm.rank())] = comm.selector().model().within;
  });
  return links;
}

TEST(FitTest, TwoRanksHoldTheSameOfWhatASecondExchangeCostsOverTheirConnection) {
  for (const testing::Wires wires : {testing::Wires::kTcp, testing::Wires::kTls}) {
    const auto links = LinksOf(2, wires);
    EXPECT_EQ(links[0].turn, links[1].turn);
    EXPECT_NE(links[0].turn, 0) << testing::NameOf(wires);
  }
}

TEST(FitTest, FourRanksOfANodeHoldTheSameOfWhatHalvesCostOverTheirConnections) {
  const auto links = LinksOf(4, testing::Wires::kTcp);
  EXPECT_NE(links[0].halves, 0);
  for (const LinkCost& link : links) {
    EXPECT_EQ(link.halves, links[0].halves);
    EXPECT_EQ(link.turn, 0);
  }
}

TEST(FitTest, HalvesCostNothingMoreWhereFoldsOrSharedMemoryDecide) {
  for (const LinkCost& link : LinksOf(3, testing::Wires::kTcp)) EXPECT_EQ(link.halves, 0);
  for (const LinkCost& link : LinksOf(4, testing::Wires::kShared)) EXPECT_EQ(link.halves, 0);
}

// Of the two, only rank 1 shares memory with rank 2, which is in the round.
TEST(FitTest, TwoRanksOfAGroupMeasureTheSameWhereOneSharesMemoryWithAnotherOutsideIt) {
  Group group(3, testing::Wires::kMixed);
  std::vector<LinkCost> links(2);
  group.Run([&](Communicator& comm) {
    ASSERT_TRUE(comm.Barrier("everybody").ok()) << comm.status();
    const auto pair = comm.Split(comm.rank() < 2 ? 0 : 1, comm.rank(), "pair");
    ASSERT_TRUE(pair.ok()) << pair.status();
    if (comm.rank() == 2) return;
    ASSERT_TRUE((*pair)->Fit().ok()) << (*pair)->status();
    links[static_cast<size_t>(comm.rank())] = (*pair)->selector().model().within;
  });
  EXPECT_EQ(links[0].alpha, links[1].alpha);
  EXPECT_EQ(links[0].turn, links[1].turn);
}

TEST(FitTest, TwoRanksThatShareMemoryLoseNothingBeforeASecondExchange) {
  for (const LinkCost& link : LinksOf(2, testing::Wires::kShared)) EXPECT_EQ(link.turn, 0);
}

// Of mixed wires rank 2 has none; machines may be several.
TEST(FitTest, KnowsWhetherRanksOfAMachineShareMemory) {
  const auto again = [](testing::Wires wires, const std::vector<std::string>& machines) {
    Group group(static_cast<int>(machines.size()), wires);
    std::vector<double> found(machines.size());
    group.Run([&](Communicator& comm) {
      const auto rank = static_cast<size_t>(comm.rank());
      ASSERT_TRUE(comm.Fit(machines[rank]).ok()) << comm.status();
      found[rank] = comm.selector().model().within.again;
    });
    EXPECT_EQ(std::ranges::count(found, found.front()), std::ssize(found)) << "all have the same";
    return found.front();
  };
  constexpr double kNo = 1;
  EXPECT_EQ(again(testing::Wires::kShared, {"a", "a", "a"}), CostModel::kReadAgain);
  EXPECT_EQ(again(testing::Wires::kShared, {"a", "a", "b", "c"}), CostModel::kReadAgain);
  EXPECT_EQ(again(testing::Wires::kShared, {"a", "b", "c"}), kNo);
  EXPECT_EQ(again(testing::Wires::kTcp, {"a", "a", "a"}), kNo);
  EXPECT_EQ(again(testing::Wires::kMixed, {"a", "a", "a"}), kNo);
}

}  // namespace
}  // namespace ringmaster::collectives
