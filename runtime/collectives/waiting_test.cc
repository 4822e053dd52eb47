// What ranks that wait for long cost those that work, and how fast whatever ends a round wakes
// them.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <ctime>
#include <functional>
#include <future>
#include <latch>
#include <new>
#include <sched.h>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/check.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/testing/relay.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using testing::Group;
using ::testing::HasSubstr;
using testing::Relay;
using testing::Wires;

class WaitingTest : public ::testing::TestWithParam<Wires> {};
INSTANTIATE_TEST_SUITE_P(Wires, WaitingTest, ::testing::ValuesIn(testing::kAllWires),
                         [](const auto& wires) { return testing::NameOf(wires.param); });

constexpr milliseconds kUntilTheySleep{300};  // for as long as they ever do
constexpr milliseconds kPromptly{100};

// All but the last of four ranks wait for that one until they sleep; then another thread of the
// first one aborts. How long after it the last of the three returned.
steady_clock::duration AbortLatencyOfSleepers(Group& group) {
  std::barrier met(4);
  std::latch awake(3);
  std::promise<steady_clock::time_point> aborted;
  std::vector<steady_clock::time_point> ended(3);
  group.Run([&](Communicator& comm) {
    EXPECT_TRUE(comm.Barrier("meet").ok()) << comm.status();
    met.arrive_and_wait();
    if (comm.rank() == 3) return awake.wait();
    std::thread aborter;
    if (comm.rank() == 0) {
      aborter = std::thread([&] {
        std::this_thread::sleep_for(kUntilTheySleep);
        aborted.set_value(steady_clock::now());
        comm.Abort("drain");
      });
    }
    const absl::Status status = comm.Barrier("waits");
    ended[static_cast<size_t>(comm.rank())] = steady_clock::now();
    awake.count_down();
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_THAT(Message(status), HasSubstr("drain"));
    if (aborter.joinable()) aborter.join();
  });
  return *std::max_element(ended.begin(), ended.end()) - aborted.get_future().get();
}

TEST_P(WaitingTest, AnAbortWakesAllThatSleepWithin100Milliseconds) {
  EXPECT_TRUE(testing::MostTakeLessThan(kPromptly, [] {
    Group group(4, GetParam());
    return AbortLatencyOfSleepers(group);
  }));
}

// As before, but that the round fails by what the rank that they wait for does.
steady_clock::duration FailureLatencyOfSleepers(
    Wires wires, absl::StatusCode code, const std::function<void(Communicator&, Relay&)>& fail) {
  constexpr int kLast = 3;
  Group group(kLast + 1, wires);
  ++group.options.round;
  Relay relay;  // around the last, whom the others dial
  const std::string door = relay.Open(group.options.members[kLast].address);
  std::barrier met(kLast + 1);
  std::latch awake(kLast);
  steady_clock::time_point failed;
  std::vector<steady_clock::time_point> ended(kLast);
  testing::RunThreads(kLast + 1, [&](int rank) {
    CommunicatorOptions options = group.OptionsFor(rank);
    if (rank != kLast) options.members[kLast].address = door;
    const auto created = Communicator::Create(options, group.listener(rank));
    ASSERT_TRUE(created.ok()) << created.status();
    Communicator& comm = **created;
    testing::Meet(comm, met);
    if (rank == kLast) {
      std::this_thread::sleep_for(kUntilTheySleep);
      failed = steady_clock::now();
      fail(comm, relay);
      return awake.wait();
    }
    const absl::Status status = comm.Barrier("waits");
    ended[static_cast<size_t>(rank)] = steady_clock::now();
    awake.count_down();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(Message(status), HasSubstr("rank 3"));
  });
  return *std::max_element(ended.begin(), ended.end()) - failed;
}

TEST_P(WaitingTest, ARankThatDiesWakesAllThatSleepWithin100Milliseconds) {
  EXPECT_TRUE(testing::MostTakeLessThan(kPromptly, [] {
    return FailureLatencyOfSleepers(GetParam(), absl::StatusCode::kUnavailable,
                                    [](Communicator&, Relay& relay) { relay.Reset(); });
  }));
}

TEST_P(WaitingTest, ARankThatDivergesWakesAllThatSleepWithin100Milliseconds) {
  EXPECT_TRUE(testing::MostTakeLessThan(kPromptly, [] {
    return FailureLatencyOfSleepers(
        GetParam(), absl::StatusCode::kFailedPrecondition, [](Communicator& comm, Relay&) {
          std::vector<float> data(7);
          EXPECT_EQ(comm.Allreduce(Reduction::kSum, data, data, "another").code(),
                    absl::StatusCode::kFailedPrecondition)
              << comm.status();
        });
  }));
}

TEST_P(WaitingTest, ARankWhoseMemoryRunsOutWakesAllThatSleepWithin100Milliseconds) {
  EXPECT_TRUE(testing::MostTakeLessThan(kPromptly, [] {
    return FailureLatencyOfSleepers(
        GetParam(), absl::StatusCode::kResourceExhausted, [](Communicator& comm, Relay&) {
          const auto fail = [](Transport&) -> absl::Status { throw std::bad_alloc(); };
          EXPECT_EQ(comm.Run(Operation(), fail).code(), absl::StatusCode::kResourceExhausted);
        });
  }));
}

// How long after Abort an operation that waits for a peer that never comes returned.
steady_clock::duration AbortLatency(Communicator& comm) {
  std::promise<void> waiting;
  std::promise<steady_clock::time_point> aborted;
  std::thread aborter([&] {
    waiting.get_future().wait();
    aborted.set_value(steady_clock::now());
    comm.Abort("told to");
  });
  Operation operation;
  const absl::Status status = comm.Run(operation, [&](Transport& transport) {
    const Receipt receipt = transport.PostReceive(1 - comm.rank(), {});
    waiting.set_value();
    return transport.Wait(receipt);
  });
  const auto latency = steady_clock::now() - aborted.get_future().get();
  aborter.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  return latency;
}

TEST_P(WaitingTest, AbortFromAnotherThreadReturnsTheWaitWithin100Milliseconds) {
  Group group(2, GetParam());
  // Once while it dials and once while it waits to be dialed.
  for (const int rank : {0, 1}) {
    const auto latency = [&] {
      ++group.options.round;
      const auto comm = group.Open(rank);
      return AbortLatency(*comm);
    };
    EXPECT_TRUE(testing::MostTakeLessThan(kPromptly, latency)) << "rank " << rank;
  }
}

// Two ranks of a stream of gigabytes, of which one aborts once it runs. The longer of the times
// that the two took to end.
steady_clock::duration AbortLatencyInAStream(Group& group) {
  constexpr int kMessages = 40'000;
  constexpr size_t kMessageBytes = 64 * 1024;
  std::promise<void> runs;
  std::promise<steady_clock::time_point> aborted;
  std::vector<steady_clock::time_point> ended(2);
  group.Run([&](Communicator& comm) {
    std::thread aborter;
    if (comm.rank() == 1) {
      aborter = std::thread([&] {
        runs.get_future().wait();
        aborted.set_value(steady_clock::now());
        comm.Abort("enough");
      });
    }
    std::vector<std::byte> bytes(kMessageBytes);
    const absl::Status status = comm.Run(Operation(), [&](Transport& transport) -> absl::Status {
      Receipt first;
      for (int i = 0; i < kMessages; ++i) {
        if (comm.rank() == 0) {
          transport.PostSend(1, bytes);
        } else if (const Receipt receipt = transport.PostReceive(0, bytes); i == 0) {
          first = receipt;
        }
      }
      if (comm.rank() == 1) {
        RM_RETURN_IF_ERROR(transport.Wait(first));
        runs.set_value();
      }
      return transport.Finish();
    });
    ended[static_cast<size_t>(comm.rank())] = steady_clock::now();
    EXPECT_THAT(Message(status), HasSubstr("enough"));
    if (aborter.joinable()) aborter.join();
  });
  return std::max(ended[0], ended[1]) - aborted.get_future().get();
}

TEST_P(WaitingTest, AbortEndsALongStreamWithin100Milliseconds) {
  Group group(2, GetParam());
  EXPECT_TRUE(testing::MostTakeLessThan(kPromptly, [&] { return AbortLatencyInAStream(group); }));
}

TEST(WaitingHandlesTest, AnAbortWakesAllOfThemWithin100Milliseconds) {
  Group group(2);
  EXPECT_TRUE(testing::MostTakeLessThan(kPromptly, [&] {
    ++group.options.round;
    const auto comm = group.Open(0);
    std::vector<float> data(100);
    std::vector<Handle> handles;
    for (int i = 0; i < 10; ++i)
      handles.push_back(comm->AllreduceAsync(Reduction::kSum, data, data, "waits"));
    EXPECT_FALSE(handles[0].Done());
    const auto start = steady_clock::now();
    comm->Abort("told to");
    for (const Handle& handle : handles) {
      EXPECT_EQ(handle.Wait().code(), absl::StatusCode::kAborted);
      EXPECT_THAT(Message(handle.status()), HasSubstr("told to"));
    }
    return steady_clock::now() - start;
  }));
}

nanoseconds OwnProcessorTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

// This thread, and those that it starts from here on, may run on so many processors, or on those
// that there are; how many these are.
int StayOn(int most) {
  cpu_set_t allowed;
  RM_CHECK(sched_getaffinity(0, sizeof(allowed), &allowed) == 0, "no affinity");
  cpu_set_t few;
  CPU_ZERO(&few);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&few) < most; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &few);
  }
  RM_CHECK(sched_setaffinity(0, sizeof(few), &few) == 0, "no affinity");
  return CPU_COUNT(&few);
}

TEST_P(WaitingTest, RanksBeyondTheProcessorsLeaveThemWhileTheyWait) {
  static constexpr milliseconds kLate{500};
  static constexpr double kSmallPart =
      0.2;  // it is 0.005; who spins has all of a processor, or its share
  std::thread([] {
    const int world = 2 * StayOn(2);
    Group group(world, GetParam());
    group.Run([&](Communicator& comm) {
      EXPECT_TRUE(comm.Barrier("meet").ok()) << comm.status();
      if (comm.rank() == world - 1) std::this_thread::sleep_for(kLate);
      const auto start = steady_clock::now();
      const nanoseconds before = OwnProcessorTime();
      EXPECT_TRUE(comm.Barrier("waits").ok()) << comm.status();
      const nanoseconds used = OwnProcessorTime() - before;
      const nanoseconds took = steady_clock::now() - start;
      if (comm.rank() == world - 1) return;
      EXPECT_LT(static_cast<double>(used.count()), kSmallPart * static_cast<double>(took.count()))
          << "rank " << comm.rank();
    });
  }).join();
}

}  // namespace
}  // namespace ringmaster::collectives
