// Process groups: what they compute, that they may overlap, and how they fail.
#include "runtime/collectives/testing/group.h"

#include <barrier>
#include <chrono>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::Group;
using ::testing::HasSubstr;

std::unique_ptr<Communicator> Make(Communicator& comm, const std::vector<int>& ranks,
                                   const std::string& name) {
  auto group = comm.Group(ranks, name);
  EXPECT_TRUE(group.ok()) << group.status();
  return group.ok() ? std::move(*group) : nullptr;
}

absl::StatusOr<int64_t> SumOf(Communicator& comm, int64_t value, const std::string& name) {
  const std::vector<int64_t> in = {value};
  std::vector<int64_t> out(1);
  RM_RETURN_IF_ERROR(comm.Allreduce(Reduction::kSum, in, out, name));
  return out[0];
}

TEST(GroupTest, SplitDividesByColorAndOrdersByKeyThenRank) {
  Group group(5);
  group.Run([](Communicator& comm) {
    // Odd ranks backwards, even ones but 4 by rank, and 4 in none.
    const int rank = comm.rank();
    auto half = comm.Split(rank == 4 ? -1 : rank % 2, rank % 2 == 1 ? -rank : 0, "parity");
    ASSERT_TRUE(half.ok()) << half.status();
    ASSERT_EQ(*half == nullptr, rank == 4);
    if (rank == 4) return;
    EXPECT_EQ((*half)->world(), 2);
    EXPECT_EQ((*half)->rank(), rank % 2 == 0 ? rank / 2 : 1 - rank / 2);
    const std::vector<uint8_t> mine = {static_cast<uint8_t>(rank)};
    std::vector<uint8_t> out(2);
    const std::vector<size_t> ones = {1, 1};
    ASSERT_TRUE((*half)->Allgather(mine, ones, out, "who").ok()) << (*half)->status();
    if (rank % 2 == 0) {
      EXPECT_THAT(out, ElementsAre(0, 2));
    } else {
      EXPECT_THAT(out, ElementsAre(3, 1));
    }
  });
}

TEST(GroupTest, GroupsOfAnySubsetsWorkInOneOrder) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr int kWorld = 5;
  constexpr int kGroups = 12;
  std::mt19937 random(seed);
  std::vector<std::vector<int>> subsets;
  while (subsets.size() < kGroups) {
    std::vector<int> ranks(kWorld);
    std::iota(ranks.begin(), ranks.end(), 0);
    std::shuffle(ranks.begin(), ranks.end(), random);
    ranks.resize(1 + random() % kWorld);
    subsets.push_back(ranks);
  }
  std::vector<size_t> order(300);
  for (size_t& which : order) which = random() % (kGroups + 1);
  Group group(kWorld);
  group.options.segment_bytes = 128;
  group.Run([&](Communicator& comm) {
    std::vector<std::unique_ptr<Communicator>> groups;
    for (const auto& ranks : subsets) {
      const bool member = std::count(ranks.begin(), ranks.end(), comm.rank()) > 0;
      groups.push_back(member ? Make(comm, ranks, "subset") : nullptr);
    }
    for (size_t i = 0; i < order.size(); ++i) {
      Communicator* const of = order[i] == kGroups ? &comm : groups[order[i]].get();
      if (of == nullptr) continue;
      const size_t count = i % 7 == 0 ? 400 : 3;
      const std::vector<int64_t> in(count, comm.rank() + static_cast<int64_t>(i));
      std::vector<int64_t> out(count);
      int64_t want = static_cast<int64_t>(i) * of->world();
      for (int rank = 0; rank < of->world(); ++rank)
        want += order[i] == kGroups ? rank : subsets[order[i]][static_cast<size_t>(rank)];
      ASSERT_TRUE(of->Allreduce(Reduction::kSum, in, out, "sum").ok()) << of->status();
      ASSERT_EQ(out, std::vector<int64_t>(count, want));
    }
  });
}

TEST(GroupTest, AGroupOfAGroupCountsItsOwnRanks) {
  Group group(4);
  group.Run([](Communicator& comm) {
    if (comm.rank() == 0) return;
    const auto outer = Make(comm, {3, 2, 1}, "outer");
    if (comm.rank() == 2) return;
    const auto inner = Make(*outer, {2, 0}, "inner");  // ranks 1 and 3
    EXPECT_EQ(inner->rank(), comm.rank() == 1 ? 0 : 1);
    std::vector<int64_t> value = {comm.rank()};
    const absl::Status moved =
        inner->rank() == 0 ? inner->Send(1, value, "x") : inner->Receive(0, value, "x");
    EXPECT_TRUE(moved.ok()) << moved;
    EXPECT_EQ(value[0], 1);
    std::vector<int64_t> theirs(1);
    const std::vector<int64_t> mine = {comm.rank()};
    const int peer = 1 - inner->rank();
    EXPECT_TRUE(inner->SendReceive(peer, mine, peer, theirs, "halo").ok()) << inner->status();
    EXPECT_EQ(theirs[0], 4 - comm.rank());
    const auto sum = SumOf(*inner, comm.rank(), "sum");
    ASSERT_TRUE(sum.ok()) << sum.status();
    EXPECT_EQ(*sum, 4);
  });
}

TEST(GroupTest, ListsThatMakeNoGroupAreRefused) {
  Group group(3);
  group.Run([](Communicator& comm) {
    for (const std::vector<int>& ranks : {std::vector<int>{},
                                          {0, 1, 2, 3},
                                          {-1, comm.rank()},
                                          {comm.rank(), comm.rank()},
                                          {(comm.rank() + 1) % 3}}) {
      EXPECT_EQ(comm.Group(ranks, "bad").status().code(), absl::StatusCode::kInvalidArgument);
    }
    EXPECT_TRUE(comm.Barrier("still alive").ok());
  });
}

TEST(GroupTest, AGroupOutlivesTheCommunicatorThatMadeIt) {
  Group group(3);
  ++group.options.round;
  testing::RunThreads(3, [&](int rank) {
    auto whole = group.Open(rank);
    const auto part = Make(*whole, {2, 1, 0}, "all, backwards");
    whole.reset();
    const auto sum = SumOf(*part, rank, "sum");
    ASSERT_TRUE(sum.ok()) << sum.status();
    EXPECT_EQ(*sum, 3);
    EXPECT_EQ(part->rank(), 2 - rank);
  });
}

// Ranks 1 and 2 are at work together for that long.
void WorkInAnotherGroup(Communicator& comm, milliseconds duration) {
  const auto busy = Make(comm, {1, 2}, "busy");
  const auto start = steady_clock::now();
  std::vector<uint8_t> go_on = {1};
  while (go_on[0] == 1) {
    go_on[0] = steady_clock::now() - start < duration ? 1 : 0;
    ASSERT_TRUE(busy->Broadcast(0, go_on, "work").ok()) << busy->status();
    std::this_thread::sleep_for(milliseconds(5));
  }
}

// Waiting long for a rank that is busy with others is not a deadlock.
TEST(GroupTest, AMemberThatIsBusyInAnotherGroupIsWaitedFor) {
  Group group(3);
  group.options.operation_timeout = testing::kImpatience;
  std::atomic<bool> enough = false;
  group.Run([&](Communicator& comm) {
    ASSERT_TRUE(comm.Barrier("meet").ok());
    if (comm.rank() == 0) {
      const auto first = Make(comm, {0, 1}, "first");
      EXPECT_TRUE(first->Barrier("at last").ok()) << first->status();
      return;
    }
    WorkInAnotherGroup(comm, 5 * group.options.operation_timeout);
    if (comm.rank() == 1) {
      EXPECT_TRUE(Make(comm, {0, 1}, "first")->Barrier("at last").ok()) << comm.status();
    }
  });
}

// What it does not take yet fills its memory for the connection, and stays there.
TEST(GroupTest, AMemberThatIsBusyInAnotherGroupIsWaitedForWithALargeArray) {
  Group group(3, testing::Wires::kTcp);
  group.options.operation_timeout = testing::kImpatience;
  group.Run([&](Communicator& comm) {
    ASSERT_TRUE(comm.Barrier("meet").ok());
    std::vector<uint8_t> large(size_t{64} << 20, comm.rank() == 0 ? 7 : 0);
    if (comm.rank() == 0) {
      EXPECT_TRUE(comm.Send(1, large, "large").ok()) << comm.status();
      return;
    }
    WorkInAnotherGroup(comm, 5 * group.options.operation_timeout);
    if (comm.rank() == 2) return;
    EXPECT_TRUE(comm.Receive(0, large, "large").ok()) << comm.status();
    EXPECT_EQ(std::count(large.begin(), large.end(), 7), std::ssize(large));
  });
}

class GroupFailureTest : public ::testing::Test {
 protected:
  // Every rank runs `body`, which must fail, with a message that has all of `words`.
  void ExpectDivergence(int world, const std::function<absl::Status(Communicator&)>& body,
                        const std::vector<std::string>& words) {
    Group group(world);
    group.options.algorithm = algorithm_;
    std::barrier everybody(world);
    const auto start = steady_clock::now();
    group.Run([&](Communicator& comm) {
      EXPECT_TRUE(comm.Barrier("meet").ok());
      everybody.arrive_and_wait();
      const absl::Status status = body(comm);
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      for (const std::string& word : words) EXPECT_THAT(Message(status), HasSubstr(word));
      everybody.arrive_and_wait();
    });
    EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(20));
  }

  Algorithm algorithm_ = Algorithm::kRing;  // not all talk with all
};

TEST_F(GroupFailureTest, GroupsThatAreCalledInAnotherOrderAreNamed) {
  ExpectDivergence(2,
                   [](Communicator& comm) -> absl::Status {
                     const auto rows = Make(comm, {0, 1}, "rows");
                     const auto columns = Make(comm, {1, 0}, "columns");
                     RM_RETURN_IF_ERROR((comm.rank() == 0 ? rows : columns)->Barrier("first"));
                     return (comm.rank() == 0 ? columns : rows)->Barrier("second");
                   },
                   {"rank 0 (", "rank 1 (", "in group \"rows\"", "in group \"columns\""});
}

// In the ring of all four, 0 and 2 exchange nothing.
TEST_F(GroupFailureTest, AnotherOrderIsNamedWhereTheTwoDoNotTalkInOneOfTheGroups) {
  ExpectDivergence(
      4,
      [](Communicator& comm) -> absl::Status {
        const std::vector<float> in(100'000);
        std::vector<float> out(in.size());
        const auto all = Make(comm, {0, 1, 2, 3}, "all");
        if (comm.rank() % 2 == 1) return all->Allreduce(Reduction::kSum, in, out, "w");
        const auto even = Make(comm, {0, 2}, "even");
        if (comm.rank() == 2) RM_RETURN_IF_ERROR(even->Barrier("early"));
        RM_RETURN_IF_ERROR(all->Allreduce(Reduction::kSum, in, out, "w"));
        return even->Barrier("late");
      },
      {"rank 2 (", "\"early\", in group \"even\"", "\"w\", sum by ring, in group \"all\""});
}

TEST_F(GroupFailureTest, ListsThatDifferAreNamed) {
  ExpectDivergence(3,
                   [](Communicator& comm) {
                     std::vector<int> ranks = {0, 1, 2};
                     if (comm.rank() == 1) std::swap(ranks[0], ranks[2]);
                     return Make(comm, ranks, "tp")->Barrier("b");
                   },
                   {"rank 1 (", "in group \"tp\""});
}

TEST(GroupRoundTest, AFailureInAGroupIsTheWholeRoundsWithOneCause) {
  Group group(4);
  std::barrier everybody(4);
  group.Run([&](Communicator& comm) {
    EXPECT_TRUE(comm.Barrier("meet").ok());
    everybody.arrive_and_wait();
    const auto pair =
        Make(comm, comm.rank() < 2 ? std::vector<int>{0, 1} : std::vector<int>{2, 3}, "pair");
    if (comm.rank() == 0) {
      pair->Abort("drain");
    } else if (comm.rank() == 1) {
      EXPECT_THAT(Message(pair->Barrier("b")), HasSubstr("rank 0 aborted the round: drain"));
    } else {
      EXPECT_TRUE(pair->Barrier("the others do not know yet, or do").ok() || !comm.status().ok());
      EXPECT_THAT(Message(comm.Barrier("all")), HasSubstr("rank 0 aborted the round: drain"));
    }
    EXPECT_THAT(Message(comm.status()), HasSubstr("drain"));
    EXPECT_EQ(Message(pair->status()), Message(comm.status()));
    everybody.arrive_and_wait();
  });
}

// One made its group before it was known which ranks share a machine.
TEST_F(GroupFailureTest, TwoLevelsThatJoinOtherRanksAreNamed) {
  algorithm_ = Algorithm::kTwoLevel;
  ExpectDivergence(
      4,
      [](Communicator& comm) -> absl::Status {
        const auto early = Make(comm, {0, 1, 2, 3}, "all");
        RM_RETURN_IF_ERROR(comm.Fit(comm.rank() % 2 == 0 ? "a" : "b"));
        const auto late = Make(comm, {0, 1, 2, 3}, "all");
        std::vector<float> data(1000);
        return (comm.rank() == 1 ? early : late)->Allreduce(Reduction::kSum, data, data, "w");
      },
      {"rank 1 (", "\"w\", sum by two-level over nodes 0|1|2|3 with ",
       "\"w\", sum by two-level over nodes 0,2|1,3 with "});
}

class CircleTest : public ::testing::TestWithParam<testing::Wires> {
 protected:
  // Every rank's `wait` fails soon, and the message says who waits for whom: 0 for 1, 1 for 2, ...
  void ExpectCircle(int world, const std::function<absl::Status(Communicator&)>& wait) {
    Group group(world, GetParam());
    std::barrier everybody(world);
    group.Run([&](Communicator& comm) {
      EXPECT_TRUE(comm.Barrier("meet").ok());
      everybody.arrive_and_wait();
      const auto start = steady_clock::now();
      const absl::Status status = wait(comm);
      EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(10));
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(Message(status), HasSubstr("wait for one another in a circle"));
      for (int rank = 0; rank < world; ++rank) {
        EXPECT_THAT(Message(status), AllOf(HasSubstr("rank " + std::to_string(rank) + " ("),
                                           HasSubstr(" waits for rank " + std::to_string(rank))));
      }
      everybody.arrive_and_wait();
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Wires, CircleTest, ::testing::ValuesIn(testing::kAllWires),
                         [](const auto& wires) { return testing::NameOf(wires.param); });

// No two of them disagree: 0 waits for 1, 1 for 2, 2 for 0.
TEST_P(CircleTest, OfThreeGroupsIsFoundAndSaysWhoWaitsInWhat) {
  ExpectCircle(3, [](Communicator& comm) {
    const int next = (comm.rank() + 1) % 3;
    const auto with_next = Make(comm, {comm.rank(), next}, "of " + std::to_string(comm.rank()));
    const absl::Status status = with_next->Barrier("circle");
    for (const std::string group : {"of 0", "of 1", "of 2"}) {
      EXPECT_THAT(Message(status), HasSubstr("barrier of 0 uint8 \"circle\", in group \"" + group));
    }
    return status;
  });
}

TEST_P(CircleTest, OfRanksThatAllReceiveIsFound) {
  ExpectCircle(4, [](Communicator& comm) {
    std::vector<float> data(10);
    return comm.Receive((comm.rank() + 1) % 4, data, "x");
  });
}

// 0 and 1 are in one operation, with which 1 cannot go on before 2 comes; 2 waits for 3, and 3 for
// 0.
TEST_P(CircleTest, ThroughAnOperationThatHasBegunIsFound) {
  ExpectCircle(4, [](Communicator& comm) {
    const int rank = comm.rank();
    if (rank == 2) return Make(comm, {2, 3}, "bottom")->Barrier("circle");
    if (rank == 3) return Make(comm, {3, 0}, "side")->Barrier("circle");
    Operation operation;
    operation.name = "relayed";
    return Make(comm, {0, 1, 2}, "top")->Run(operation, [&](Transport& transport) {
      std::byte got{};
      return transport.Wait(transport.PostReceive(rank + 1, {&got, 1}));
    });
  });
}

// Long waits, of many for few, in groups that overlap, are no circles.
TEST_P(CircleTest, IsNotFoundWhereThereIsNone) {
  constexpr int kWorld = 4;
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<int> order(14);
  for (int& which : order) which = static_cast<int>(random() % (kWorld + 1));
  Group group(kWorld, GetParam());
  group.options.operation_timeout = milliseconds(4000);  // so that many questions are asked
  group.Run([&](Communicator& comm) {
    std::mt19937 pauses(seed + 1 + static_cast<unsigned>(comm.rank()));
    std::vector<std::unique_ptr<Communicator>> groups;
    for (int without = 0; without < kWorld; ++without) {
      std::vector<int> ranks;
      for (int rank = 0; rank < kWorld; ++rank) {
        if (rank != without) ranks.push_back(rank);
      }
      const bool member = std::count(ranks.begin(), ranks.end(), comm.rank()) > 0;
      groups.push_back(member ? Make(comm, ranks, "some") : nullptr);
    }
    for (const int which : order) {
      Communicator* const of = which == kWorld ? &comm : groups[static_cast<size_t>(which)].get();
      if (of == nullptr) continue;
      if (pauses() % 3 == 0) std::this_thread::sleep_for(milliseconds(120 + pauses() % 130));
      const auto sum = SumOf(*of, 1, "sum");
      ASSERT_TRUE(sum.ok()) << sum.status();
      ASSERT_EQ(*sum, of->world());
    }
  });
}

}  // namespace
}  // namespace ringmaster::collectives
