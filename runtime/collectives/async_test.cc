// Asynchronous calls: their order, their handles, and what an abort or a destructor does to them.
#include <barrier>
#include <filesystem>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/conformance.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives {
namespace {

using testing::Group;
using ::testing::HasSubstr;

TEST(AsyncTest, CallsOfSeveralGroupsRunInTheOrderOfTheProgram) {
  Group group(5);
  group.Run(testing::ExpectStartedCallsInOrder);
}

TEST(AsyncTest, AHandleIsNotDoneBeforeItsOperationIs) {
  Group group(2);
  std::barrier looked(2);
  group.Run([&](Communicator& comm) {
    std::vector<float> data(10, 1.0f);
    if (comm.rank() == 0) {
      const Handle handle = comm.ReceiveAsync(1, data, "x");
      EXPECT_FALSE(handle.Done());
      EXPECT_EQ(handle.status().code(), absl::StatusCode::kUnavailable);
      looked.arrive_and_wait();
      EXPECT_TRUE(handle.Wait().ok()) << handle.status();
      EXPECT_TRUE(handle.Done());
      EXPECT_TRUE(handle.status().ok());
      EXPECT_EQ(data, std::vector<float>(10, 2.0f));
    } else {
      data.assign(10, 2.0f);
      looked.arrive_and_wait();
      EXPECT_TRUE(comm.SendAsync(0, data, "x").Wait().ok()) << comm.status();
    }
  });
}

TEST(AsyncTest, OperationsWhoseHandlesAreDroppedGoOn) {
  Group group(3);
  group.Run([](Communicator& comm) {
    std::vector<int64_t> data(1000, comm.rank() == 1 ? 7 : 0);
    comm.BroadcastAsync(1, data, "b");
    comm.AllreduceAsync(Reduction::kSum, data, data, "s");
    EXPECT_TRUE(comm.Barrier("done").ok()) << comm.status();
    EXPECT_EQ(data, std::vector<int64_t>(1000, 21));
  });
}

TEST(AsyncTest, AWrongArgumentIsTheHandlesAndNotTheRounds) {
  Group group(2);
  group.Run([](Communicator& comm) {
    std::vector<float> data(4);
    EXPECT_EQ(comm.BroadcastAsync(9, data, "b").Wait().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(comm.Barrier("still alive").ok());
  });
}

TEST(AsyncTest, ADestructorEndsWhatIsPendingAndTellsThePeers) {
  Group group(3);
  std::barrier everybody(3);
  std::barrier over(3);
  ++group.options.round;
  testing::RunThreads(3, [&](int rank) {
    auto comm = group.Open(rank);
    EXPECT_TRUE(comm->Barrier("meet").ok());
    everybody.arrive_and_wait();
    std::vector<float> data(10);
    std::vector<float> sum(10);
    if (rank == 2) {  // who does not come, and stays: the others wait for it
      over.arrive_and_wait();
      return;
    }
    if (rank == 1) {
      const absl::Status status = comm->Allreduce(Reduction::kSum, data, sum, "waits");
      EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
      EXPECT_THAT(Message(status), HasSubstr("were pending"));
      over.arrive_and_wait();
      return;
    }
    const Handle waits = comm->AllreduceAsync(Reduction::kSum, data, sum, "waits");
    std::vector<float> more(10);
    const Handle behind = comm->BroadcastAsync(1, more, "behind");
    comm.reset();
    for (const Handle& handle : {waits, behind}) {
      EXPECT_TRUE(handle.Done());
      EXPECT_FALSE(handle.status().ok());
    }
    over.arrive_and_wait();
  });
}

TEST(AsyncTest, WhatIsDoneDoesNotHinderTheDestructor) {
  Group group(2);
  for (int lap = 0; lap < 50; ++lap) {
    group.Run([](Communicator& comm) {
      std::vector<float> data(10);
      EXPECT_TRUE(comm.AllreduceAsync(Reduction::kSum, data, data, "x").Wait().ok())
          << comm.status();
    });
  }
}

TEST(AsyncTest, ACallMayHoldTheLastCommunicatorOfItsRound) {
  Group group(1);
  ++group.options.round;
  auto comm = group.Open(0);
  const std::vector<int> all = {0};
  std::shared_ptr<Communicator> last = std::move(comm->Group(all, "last").value());
  std::promise<void> alone;
  std::promise<void> ended;
  // Let go on the thread that runs the calls, when there is no other communicator any more.
  std::shared_ptr<void> held(nullptr, [&, last = std::move(last)](void*) mutable {
    alone.get_future().wait();
    last.reset();
    ended.set_value();
  });
  const Handle call = comm->Start([held = std::move(held)] { return absl::OkStatus(); });
  EXPECT_TRUE(call.Wait().ok()) << call.status();
  comm.reset();
  alone.set_value();
  ended.get_future().wait();
}

TEST(AsyncTest, MemoryThatRunsOutInACallEndsTheRoundAndNotTheProgram) {
  Group group(2);
  std::barrier everybody(2);
  group.Run([&](Communicator& comm) {
    EXPECT_TRUE(comm.Barrier("meet").ok());
    const Handle call = comm.Start([&]() -> absl::Status {
      if (comm.rank() == 0) throw std::bad_alloc();
      return comm.Barrier("waits");
    });
    EXPECT_EQ(call.Wait().code(), absl::StatusCode::kResourceExhausted) << call.status();
    EXPECT_THAT(Message(call.status()), HasSubstr("rank 0 ran out of memory"));
    EXPECT_EQ(comm.suspect(), 0);
    everybody.arrive_and_wait();
  });
}

TEST(AsyncTest, AnotherOrderOfStartedCallsIsNamed) {
  Group group(2);
  std::barrier everybody(2);
  group.Run([&](Communicator& comm) {
    std::vector<float> a(10);
    std::vector<float> b(10);
    const std::vector<std::string> names = {"a", "b"};
    const size_t first = static_cast<size_t>(comm.rank());
    const Handle one = comm.AllreduceAsync(Reduction::kSum, a, a, names[first]);
    const Handle two = comm.AllreduceAsync(Reduction::kSum, b, b, names[1 - first]);
    EXPECT_EQ(one.Wait().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Message(one.status()), ::testing::AllOf(HasSubstr("\"a\""), HasSubstr("\"b\"")));
    EXPECT_EQ(two.Wait().code(), absl::StatusCode::kAborted);
    everybody.arrive_and_wait();
  });
}

}  // namespace
}  // namespace ringmaster::collectives
