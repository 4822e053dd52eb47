// How a round ends: divergent programs, silent peers, aborts, and what is left afterwards.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/transport/shm/segment.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using testing::Group;
using ::testing::HasSubstr;
using testing::Wires;

// Rounds of each kind of wires. What leaks does so in each, so a sanitizer needs fewer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kLaps = 250;
#else
constexpr int kLaps = 1000;
#endif

size_t OpenDescriptors() {
  const auto entries = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

size_t Threads() {
  const auto entries = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

// Of files in /dev/shm, which have lost their names.
size_t SharedMappings() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find(std::string("/dev/shm/") + shm::kNamePrefix) != std::string::npos ? 1 : 0;
  return count;
}

absl::Status Allreduce(Communicator& comm, size_t count, const std::string& name) {
  const std::vector<float> in(count, 1.0f);
  std::vector<float> out(count);
  return comm.Allreduce(Reduction::kSum, in, out, name);
}

class DivergenceTest : public ::testing::TestWithParam<Wires> {
 protected:
  // Every rank runs `same`, and rank 1 `other`. All must fail, soon, naming rank 1 and both
  // operations, and which it is in the round.
  void ExpectNamed(const std::function<absl::Status(Communicator&)>& same,
                   const std::function<absl::Status(Communicator&)>& other,
                   const std::string& same_text, const std::string& other_text,
                   const std::string& which = "operation 2") {
    const auto start = steady_clock::now();
    std::barrier everybody(3);
    group_.Run([&](Communicator& comm) {
      testing::Meet(comm, everybody);
      const absl::Status status = comm.rank() == 1 ? other(comm) : same(comm);
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 1 ("), HasSubstr(same_text),
                                         HasSubstr(other_text), HasSubstr(which)));
      EXPECT_EQ(comm.Barrier("later").code(), absl::StatusCode::kAborted);
    });
    EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(20));
  }

  Group group_{3, GetParam()};
};

std::string WiresName(const ::testing::TestParamInfo<Wires>& wires) {
  return testing::NameOf(wires.param);
}

INSTANTIATE_TEST_SUITE_P(Wires, DivergenceTest, ::testing::ValuesIn(testing::kAllWires), WiresName);

TEST_P(DivergenceTest, NamesRankAndTensorWhenNamesDiffer) {
  ExpectNamed([](Communicator& c) { return Allreduce(c, 1000, "conv1/weight"); },
              [](Communicator& c) { return Allreduce(c, 1000, "conv2/weight"); },
              "allreduce of 1000 float32 \"conv1/weight\"",
              "allreduce of 1000 float32 \"conv2/weight\"");
}

TEST_P(DivergenceTest, NamesRankAndTensorWhenLengthsDiffer) {
  ExpectNamed([](Communicator& c) { return Allreduce(c, 1000, "w"); },
              [](Communicator& c) { return Allreduce(c, 999, "w"); }, "of 1000 float32",
              "of 999 float32");
}

TEST_P(DivergenceTest, NamesRankAndTensorWhenOperationsDiffer) {
  ExpectNamed([](Communicator& c) { return Allreduce(c, 100, "w"); },
              [](Communicator& c) { return c.Barrier("epoch end"); }, "allreduce of 100",
              "barrier of 0 uint8 \"epoch end\"");
}

TEST_P(DivergenceTest, NamesRankAndTensorWhenTheReductionDiffers) {
  const auto reduce = [](Reduction reduction, const std::string& name) {
    return [=](Communicator& c) {
      const std::vector<int64_t> in(1);
      std::vector<int64_t> out(1);
      return c.Allreduce(reduction, in, out, name);
    };
  };
  ExpectNamed(reduce(Reduction::kMin, "a"), reduce(Reduction::kMax, "a"), "int64 \"a\", min",
              "int64 \"a\", max");
}

TEST_P(DivergenceTest, NamesRankAndTensorWhenOneRepeatsWhatTheOthersDoNot) {
  const auto twice = [](const std::string& first, const std::string& second) {
    return [=](Communicator& c) {
      const absl::Status status = Allreduce(c, 10, first);
      return status.ok() ? Allreduce(c, 10, second) : status;
    };
  };
  ExpectNamed(twice("conv1/weight", "conv1/bias"), twice("conv1/weight", "conv1/weight"),
              "allreduce of 10 float32 \"conv1/bias\"", "allreduce of 10 float32 \"conv1/weight\"",
              "operation 3");
  // One that is the other, cut off where descriptions are.
  const std::string cut(kMaxDescriptionBytes, 'w');
  ExpectNamed(twice(cut + "eight", cut), twice(cut + "eight", cut + "eight"), "float32 \"www",
              "float32 \"www", "operation 3");
}

class FailureTest : public ::testing::TestWithParam<Wires> {};
INSTANTIATE_TEST_SUITE_P(Wires, FailureTest, ::testing::ValuesIn(testing::kAllWires), WiresName);

TEST_P(FailureTest, ARankThatStaysAwayIsNamedByAll) {
  Group group(4, GetParam());
  std::barrier everybody(4);
  group.options.operation_timeout = testing::kImpatience;
  std::vector<std::string> messages(4);
  std::vector<int> suspects(4, -1);
  std::promise<void> done;
  std::shared_future<void> all_failed = done.get_future().share();
  std::atomic<int> failed = 0;
  group.Run([&](Communicator& comm) {
    testing::Meet(comm, everybody);
    if (comm.rank() == 2) {
      all_failed.wait_for(testing::kPatience);
      return;
    }
    const auto start = steady_clock::now();
    const absl::Status status = Allreduce(comm, 100000, "gradient");
    EXPECT_LT(steady_clock::now() - start, testing::kImpatience * 3 + milliseconds(2000));
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(Message(status),
                AllOf(HasSubstr("rank 2 ("), HasSubstr("silent"), HasSubstr("\"gradient\"")));
    EXPECT_EQ(comm.suspect(), 2);
    if (++failed == 3) done.set_value();
  });
}

TEST_P(FailureTest, ARankThatLeavesIsNamed) {
  Group group(3, GetParam());
  std::barrier everybody(3);
  group.Run([&](Communicator& comm) {
    testing::Meet(comm, everybody);
    if (comm.rank() == 1) return;
    const absl::Status status = Allreduce(comm, 1000, "gradient");
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_THAT(Message(status), HasSubstr("rank 1 ("));
    EXPECT_EQ(comm.suspect(), 1);
  });
}

TEST_P(FailureTest, ARankThatIsNeverThereIsNamedWithinTheConnectTimeout) {
  Group group(2, GetParam());
  ++group.options.round;
  group.options.connect_timeout = testing::kImpatience;
  group.options.operation_timeout = milliseconds(300);
  const auto dialing = group.Open(0);
  const absl::Status status = dialing->Barrier("start");
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 1 ("), HasSubstr("could not be reached"),
                                     HasSubstr("it has not opened the round")));
  ++group.options.round;
  const auto awaiting = group.Open(1);
  const auto start = steady_clock::now();
  EXPECT_THAT(Message(awaiting->Barrier("start")),
              AllOf(HasSubstr("rank 0 ("), HasSubstr("has not connected")));
  EXPECT_GE(steady_clock::now() - start, group.options.connect_timeout);
  EXPECT_LT(steady_clock::now() - start, testing::kPatience);
}

TEST_P(FailureTest, ALowerRankThatConnectsLateButIsAtWorkHasTheOperationTimeout) {
  Group group(2, GetParam());
  group.options.connect_timeout = milliseconds(300);
  group.options.operation_timeout = testing::kImpatience;
  group.Run([&](Communicator& comm) {
    if (comm.rank() == 0) std::this_thread::sleep_for(2 * group.options.connect_timeout);
    EXPECT_TRUE(comm.Barrier("start").ok()) << comm.status();
  });
}

// Of whom it waits for, rank 2 knows only that it waits as well.
TEST(LateRankTest, IsWaitedForWithinTheConnectTimeoutHoweverShortThatOfOperations) {
  Group group(3, Wires::kTcp);
  group.options.operation_timeout = testing::kImpatience;
  group.Run([&](Communicator& comm) {
    std::vector<float> data(1, 1.0f);
    absl::Status status;
    if (comm.rank() == 0) {
      std::this_thread::sleep_for(4 * group.options.operation_timeout);  // longer than any stall
      status = comm.Send(1, data, "late");
    } else {
      const auto pair = comm.Group(std::vector{1, 2}, "pair");
      ASSERT_TRUE(pair.ok()) << pair.status();
      EXPECT_TRUE((*pair)->Barrier("meet").ok()) << comm.status();
      if (comm.rank() == 1) status = comm.Receive(0, data, "late");
      if (status.ok()) status = (*pair)->Broadcast(0, data, "pass on");
    }
    EXPECT_TRUE(status.ok()) << status;
  });
}

TEST_P(FailureTest, LeavingAfterTheLastOperationDisturbsNobody) {
  Group group(4, GetParam());
  std::barrier everybody(4);
  for (int lap = 0; lap < 20; ++lap) {
    group.Run([&](Communicator& comm) {
      testing::Meet(comm, everybody);
      EXPECT_TRUE(comm.Barrier("last").ok()) << comm.status();
    });
  }
}

TEST_P(FailureTest, AbortWakesEveryWaiterWithItsReason) {
  Group group(4, GetParam());
  std::barrier everybody(4);
  group.Run([&](Communicator& comm) {
    testing::Meet(comm, everybody);
    if (comm.rank() != 3) {
      const absl::Status status = Allreduce(comm, 100000, "gradient");
      EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
      EXPECT_THAT(Message(status), HasSubstr("rank 3 aborted the round: drain"));
      return;
    }
    comm.Abort("drain");
    EXPECT_EQ(comm.Barrier("later").code(), absl::StatusCode::kAborted);
    EXPECT_THAT(Message(comm.status()), HasSubstr("drain"));
  });
}

TEST_P(FailureTest, AbortReachesTheOnlyPeerWhileThatSends) {
  Group group(2, GetParam());
  std::barrier everybody(2);
  group.Run([&](Communicator& comm) {
    testing::Meet(comm, everybody);
    if (comm.rank() == 1) return comm.Abort("drain");
    const absl::Status status = Allreduce(comm, 100000, "gradient");
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_THAT(Message(status), HasSubstr("rank 1 aborted the round: drain"));
  });
}

// While another thread tells the peers, whoever begins an operation is told of the failure as well.
TEST_P(FailureTest, AnOperationThatBeginsBesideAnAbortIsToldTheCause) {
  Group group(2, GetParam());
  std::barrier everybody(2);
  group.Run([&](Communicator& comm) {
    testing::Meet(comm, everybody);
    if (comm.rank() == 1) return;
    std::thread aborter([&] { comm.Abort("told to"); });
    absl::Status status;
    while (status.ok()) status = comm.Run(Operation(), [](Transport&) { return absl::OkStatus(); });
    EXPECT_THAT(Message(status), HasSubstr("told to"));
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    aborter.join();
  });
}

TEST_P(FailureTest, TheFirstCauseStays) {
  Group group(2, GetParam());
  ++group.options.round;
  const auto comm = group.Open(0);
  comm->Abort("first");
  comm->Abort("second");
  EXPECT_THAT(Message(comm->status()),
              AllOf(HasSubstr("first"), ::testing::Not(HasSubstr("second"))));
  EXPECT_EQ(Message(comm->Barrier("b")), Message(comm->status()));
}

TEST_P(FailureTest, ASecondOperationAtOnceIsTurnedAway) {
  Group group(1, GetParam());
  group.Run([](Communicator& comm) {
    Operation operation;
    operation.name = "outer";
    const absl::Status outer = comm.Run(operation, [&](Transport&) {
      EXPECT_EQ(std::async(std::launch::async, [&] { return comm.Barrier("inner"); }).get().code(),
                absl::StatusCode::kFailedPrecondition);
      return absl::OkStatus();
    });
    EXPECT_TRUE(outer.ok());
    EXPECT_TRUE(comm.Barrier("after").ok());
  });
}

// The body's memory is gone when the exception has left it, and half of its message is on its way.
TEST_P(FailureTest, MemoryThatRunsOutWhileAMessageIsSentLeavesNoByteOfWhatCameAfter) {
  constexpr size_t kMoreThanIsUnderWay = size_t{24} << 20;
  Group group(2, GetParam());
  std::barrier everybody(2);
  std::promise<void> ran_out;
  group.Run([&](Communicator& comm) {
    testing::Meet(comm, everybody);
    Operation operation;
    operation.name = "big";
    const bool sends = comm.rank() == 0;
    std::vector<std::byte> got(sends ? 0 : kMoreThanIsUnderWay);
    const absl::Status status = comm.Run(operation, [&](Transport& transport) {
      std::vector<std::byte> big(sends ? kMoreThanIsUnderWay : 0, std::byte{1});
      std::byte small{};
      const Receipt receipt = transport.PostReceive(1 - comm.rank(), {&small, 1});
      transport.PostSend(1 - comm.rank(), {&small, 1});
      if (sends) transport.PostSend(1, big);
      if (const absl::Status met = transport.Wait(receipt); !met.ok()) return met;
      if (sends) {
        std::fill(big.begin(), big.end(), std::byte{2});
        throw std::bad_alloc();
      }
      ran_out.get_future().wait_for(testing::kPatience);
      return transport.Wait(transport.PostReceive(0, got));
    });
    EXPECT_EQ(comm.suspect(), 0) << status;
    EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 0"), HasSubstr("\"big\"")));
    if (sends) {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      ran_out.set_value();
    }
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(std::count(got.begin(), got.end(), std::byte{2}), 0);
    EXPECT_EQ(comm.Barrier("later").code(), absl::StatusCode::kAborted);
  });
}

TEST_P(FailureTest, MemoryThatRunsOutIsToldToAll) {
  Group group(3, GetParam());
  std::barrier everybody(3);
  group.Run([&](Communicator& comm) {
    testing::Meet(comm, everybody);
    Operation operation;
    operation.name = "gradient";
    const absl::Status status = comm.Run(operation, [&](Transport& transport) {
      if (comm.rank() == 1) throw std::bad_alloc();
      std::byte got{};
      return transport.Wait(transport.PostReceive(1, {&got, 1}));
    });
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(Message(status),
                AllOf(HasSubstr("rank 1 ran out of memory in"), HasSubstr("\"gradient\"")));
    EXPECT_EQ(comm.suspect(), 1);
    everybody.arrive_and_wait();
  });
}

// It would wait for that rank, and blame it.
TEST_P(FailureTest, WhoDialsARankThatHasFailedIsToldWhy) {
  Group group(2, GetParam());
  ++group.options.round;
  const auto failed = group.Open(1);
  failed->Abort("drain");
  const auto late = group.Open(0);
  const absl::Status status = late->Barrier("b");
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_THAT(Message(status), HasSubstr("rank 1 aborted the round: drain"));
}

TEST_P(FailureTest, ThousandsOfRoundsLeaveNoDescriptorsThreadsOrMemory) {
  Group group(3, GetParam());
  std::barrier everybody(3);
  group.Run([&](Communicator& comm) { testing::Meet(comm, everybody); });
  const size_t descriptors = OpenDescriptors();
  const size_t threads = Threads();
  const size_t mappings = SharedMappings();
  for (int lap = 0; lap < kLaps; ++lap) {
    group.Run([&](Communicator& comm) {
      if (lap % 3 != 2) testing::Meet(comm, everybody);
      if (comm.rank() == lap % 3) comm.Abort("lap");
      if (lap % 2 == 0) Allreduce(comm, 5000, "gradient").IgnoreError();
    });
  }
  // The listeners' threads notice the last closed connections in their own time.
  const auto deadline = steady_clock::now() + testing::kPatience;
  const auto leaves_some = [&] {
    return OpenDescriptors() > descriptors || Threads() > threads || SharedMappings() > mappings;
  };
  while (leaves_some() && steady_clock::now() < deadline) std::this_thread::yield();
  // Fewer are no leak: those before may have been on their way out when they were counted.
  EXPECT_LE(OpenDescriptors(), descriptors);
  EXPECT_LE(Threads(), threads);
  EXPECT_LE(SharedMappings(), mappings);
}

}  // namespace
}  // namespace ringmaster::collectives
