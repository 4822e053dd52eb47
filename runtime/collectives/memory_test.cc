// Memory that runs out at any point of an operation, from its first check on, and of what is made
// of several.
#include <barrier>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/compression/one_bit.h"
#include "runtime/collectives/compression/top_k.h"
#include "runtime/collectives/ordered_sum.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/testing/scarce_memory.h"
#include "runtime/collectives/training/adasum.h"
#include "runtime/collectives/training/join_group.h"

namespace ringmaster::collectives {
namespace {

// A rank's arguments, which are there before memory runs short.
struct Rank {
  Communicator& comm;
  std::vector<float> in = std::vector<float>(100, 1.0f);
  std::vector<float> out = std::vector<float>(100);
  JoinGroup joining{comm};
  TopKSum top_k{100, 0.1};
  OneBitSum one_bit{100};
  Adasum adasum{2, 100, {0}};
  OrderedSum<float> sum{2, 100};

  std::vector<float> half = std::vector<float>(50, 1.0f);
};

// Too long for a string's own memory.
constexpr const char* kName = "transformer/layers/11/attention/query/weight";

struct Case {
  const char* name;
  absl::Status (*call)(Rank& rank);
};

const std::vector<size_t> kCounts = {50, 50};

const Case kCases[] = {
    {"Allreduce",
     [](Rank& r) { return r.comm.Allreduce(Reduction::kProduct, r.in, r.out, kName); }},
    {"Average", [](Rank& r) { return r.comm.Allreduce(Reduction::kAverage, r.in, r.out, kName); }},
    {"ReduceScatter",
     [](Rank& r) { return r.comm.ReduceScatter(Reduction::kSum, r.in, kCounts, r.half, kName); }},
    {"Reduce", [](Rank& r) { return r.comm.Reduce(Reduction::kSum, 0, r.in, r.out, kName); }},
    {"Broadcast", [](Rank& r) { return r.comm.Broadcast(0, r.out, kName); }},
    {"Allgather", [](Rank& r) { return r.comm.Allgather(r.half, kCounts, r.out, kName); }},
    {"Gather", [](Rank& r) { return r.comm.Gather(0, r.half, kCounts, r.out, kName); }},
    {"Scatter", [](Rank& r) { return r.comm.Scatter(0, r.in, kCounts, r.half, kName); }},
    {"AllToAll", [](Rank& r) { return r.comm.AllToAll(r.in, kCounts, r.out, kCounts, kName); }},
    {"AllToAllInPlace",
     [](Rank& r) { return r.comm.AllToAll(r.out, kCounts, r.out, kCounts, kName); }},
    {"SendAndReceive",
     [](Rank& r) {
       if (r.comm.rank() == 0) return r.comm.Send(1, r.in, kName);
       return r.comm.Receive(0, r.out, kName);
     }},
    {"ReceiveAndSend",
     [](Rank& r) {
       if (r.comm.rank() == 1) return r.comm.Send(0, r.in, kName);
       return r.comm.Receive(1, r.out, kName);
     }},
    {"SendReceive",
     [](Rank& r) {
       const int other = 1 - r.comm.rank();
       return r.comm.SendReceive(other, r.in, other, r.out, kName);
     }},
    {"Barrier", [](Rank& r) { return r.comm.Barrier(kName); }},
    {"OrderedSum", [](Rank& r) { return r.sum.Reduce(r.comm, r.out, kName); }},
    {"Split", [](Rank& r) { return r.comm.Split(0, 0, "x").status(); }},
    {"AllgatherBytes",
     [](Rank& r) { return r.comm.AllgatherBytes(std::as_bytes(std::span(r.in)), "x").status(); }},
    {"JoinGroup",
     [](Rank& r) {
       absl::Status status;
       if (r.comm.rank() == 0)
         status = r.joining.Allreduce(Reduction::kAverage, r.in, r.out, "x").status();
       return status.ok() ? r.joining.Join().status() : status;
     }},
    {"JoinGroupsAllreduce",
     [](Rank& r) { return r.joining.Allreduce(Reduction::kAverage, r.in, r.out, "x").status(); }},
    {"TopK", [](Rank& r) { return r.top_k.Reduce(r.comm, r.in, r.out, "x"); }},
    {"OneBit", [](Rank& r) { return r.one_bit.Reduce(r.comm, r.in, r.out, "x"); }},
    {"Adasum", [](Rank& r) { return r.adasum.Reduce(r.comm, r.out, "x"); }},
};

class MemoryTest : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Calls, MemoryTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST_P(MemoryTest, RunsOutAnywhereAsAStatusThatAllRanksGet) {
  testing::Group group(2);
  std::barrier everybody(2);
  bool failed = true;
  for (int64_t granted = 0; failed; ++granted) {
    SCOPED_TRACE("after " + std::to_string(granted) + " allocations");
    group.Run([&](Communicator& comm) {
      Rank rank{comm};
      ASSERT_TRUE(rank.adasum.Add(comm.rank(), rank.in).ok());
      ASSERT_TRUE(rank.sum.Add(comm.rank(), rank.in).ok());
      ASSERT_TRUE(comm.Barrier("meet").ok()) << comm.status();
      everybody.arrive_and_wait();
      absl::Status status;
      if (comm.rank() == 1) testing::FailAfter(granted);
      EXPECT_NO_THROW(status = GetParam().call(rank));
      if (comm.rank() == 1) failed = testing::HasFailed();
      if (status.ok()) status = comm.Barrier("all is well");
      if (status.ok()) return;
      EXPECT_EQ(comm.suspect(), 1) << status;
      if (comm.rank() == 1) {
        EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      }
    });
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace ringmaster::collectives
