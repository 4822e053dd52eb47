// What a rank hears of a peer whose data it has not asked for yet: that the peer aborts, dies or is
// stopped, although word of it lies behind that data.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/testing/relay.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using testing::Group;
using ::testing::HasSubstr;
using testing::Relay;
using testing::Wires;

// What is sent early, which a connection takes without being read.
constexpr size_t kEarly = 1000;

// Waits until what was sent early has come through.
void AwaitEarly(const Relay& relay) {
  EXPECT_TRUE(relay.AwaitBytes(kEarly * sizeof(float), testing::kPatience));
}

// Rank 0 sends to rank 1, which waits for rank 2, which is in the round and does nothing.
class HeldBackTest : public ::testing::TestWithParam<Wires> {
 protected:
  // What rank 0 does when rank 1 waits and has its data before it: a Send returns when the
  // connection has taken all of it, which is made by a rank that waits in an operation. The status
  // of rank 1.
  absl::Status Play(const std::function<void(Communicator&)>& after) {
    ++group_.options.round;
    std::promise<void> over;
    std::shared_future<void> is_over = over.get_future().share();
    absl::Status status;
    testing::RunThreads(3, [&](int rank) {
      CommunicatorOptions options = group_.OptionsFor(rank);
      if (!door_.empty() && rank == 0) options.members[1].address = door_;
      auto created = Communicator::Create(options, group_.listener(rank));
      ASSERT_TRUE(created.ok()) << created.status();
      Communicator& comm = **created;
      std::vector<float> data(kEarly, 1.0f);
      if (rank == 0) {
        EXPECT_TRUE(comm.Send(1, data, "early").ok()) << comm.status();
        after(comm);
      }
      if (rank == 1) {
        status = comm.Receive(2, data, "late");
        ended_ = steady_clock::now();
        suspect_ = comm.suspect();
        over.set_value();
      }
      is_over.wait_for(2 * testing::kPatience);
    });
    return status;
  }

  Group group_{3, GetParam()};
  std::string door_;  // of rank 1, for rank 0
  steady_clock::time_point ended_;
  int suspect_ = -1;
};

INSTANTIATE_TEST_SUITE_P(Wires, HeldBackTest, ::testing::Values(Wires::kTcp, Wires::kTls),
                         [](const auto& wires) { return testing::NameOf(wires.param); });

TEST_P(HeldBackTest, APeerThatAbortsIsHeardWithin100Milliseconds) {
  EXPECT_TRUE(testing::MostTakeLessThan(milliseconds(100), [&] {
    steady_clock::time_point aborted;
    const absl::Status status = Play([&](Communicator& comm) {
      aborted = steady_clock::now();
      comm.Abort("drain");
    });
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_THAT(Message(status), HasSubstr("rank 0 aborted the round: drain"));
    return ended_ - aborted;
  }));
}

TEST_P(HeldBackTest, APeerThatDiesIsNamedBeforeAnyTimeOut) {
  Relay relay;
  door_ = relay.Open(group_.options.members[1].address);
  const absl::Status status = Play([&](Communicator&) {
    AwaitEarly(relay);
    relay.Reset();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(Message(status), HasSubstr("rank 0 ("));
  EXPECT_EQ(suspect_, 0);
}

// More than is read ahead; and more than that and both kernels hold.
constexpr size_t kMoreThanIsReadAhead = size_t{5} << 20;
constexpr size_t kMoreThanIsUnderWay = size_t{80} << 20;

// What one rank sends another that does not ask for it: an abort then stands behind a message that
// will never get through, or behind many that may.
enum class Stream { kOneMessage, kManyMessages };

struct Streaming {
  Wires wires;
  Stream stream;
  int sender;  // rank 0 or 1; to the other of the two
};

std::string NameOfStreaming(const ::testing::TestParamInfo<Streaming>& info) {
  const char* const stream = info.param.stream == Stream::kOneMessage ? "One" : "Many";
  return testing::NameOf(info.param.wires) + stream + "FromRank" +
         std::to_string(info.param.sender);
}

// Ranks 0 and 1 of three; rank 2 is in the round and does nothing.
class StreamTest : public ::testing::TestWithParam<Streaming> {
 protected:
  // The sender aborts in the middle of its stream, and leaves the round at once if it `leaves`.
  // The status of the other rank, which runs `wait` meanwhile.
  absl::Status Play(const std::function<absl::Status(Communicator&)>& wait, bool leaves) {
    ++group_.options.round;
    std::promise<void> over;
    const std::shared_future<void> is_over = over.get_future().share();
    std::barrier everybody(3);
    absl::Status status;
    testing::RunThreads(3, [&](int rank) {
      CommunicatorOptions options = group_.OptionsFor(rank);
      if (!door_.empty() && rank == 0) options.members[1].address = door_;
      auto created = Communicator::Create(options, group_.listener(rank));
      ASSERT_TRUE(created.ok()) << created.status();
      const std::unique_ptr<Communicator> comm = *std::move(created);
      EXPECT_TRUE(comm->Barrier("meet").ok()) << comm->status();
      everybody.arrive_and_wait();
      if (rank == GetParam().sender) {
        EXPECT_EQ(StreamAndAbort(*comm).code(), absl::StatusCode::kAborted) << comm->status();
        if (leaves) return;
      } else if (rank != kIdle) {
        status = wait(*comm);
        ended_ = steady_clock::now();
        over.set_value();
      }
      is_over.wait_for(2 * testing::kPatience);
    });
    return status;
  }

  absl::Status StreamAndAbort(Communicator& comm) {
    const std::vector<std::byte> first(kMoreThanIsReadAhead);
    const bool one = GetParam().stream == Stream::kOneMessage;
    const std::vector<std::byte> rest(one ? kMoreThanIsUnderWay : size_t{1} << 20);
    return comm.Run(Operation(), [&](Transport& transport) -> absl::Status {
      const int to = 1 - comm.rank();
      transport.PostSend(to, first);
      for (size_t posted = 0; posted < kMoreThanIsUnderWay; posted += rest.size())
        transport.PostSend(to, rest);
      const uint64_t before = transport.traffic().bytes_sent;
      while (transport.traffic().bytes_sent < before + first.size())
        RM_RETURN_IF_ERROR(transport.Look(/*progress=*/true));
      before_abort_();
      aborted_ = steady_clock::now();
      comm.Abort("drain");
      return transport.Finish();
    });
  }

  static constexpr int kIdle = 2;
  Group group_{3, GetParam().wires};
  std::string door_;  // of rank 1, for rank 0
  std::function<void()> before_abort_ = [] {};
  steady_clock::time_point aborted_;
  steady_clock::time_point ended_;
};

INSTANTIATE_TEST_SUITE_P(Streams, StreamTest,
                         ::testing::Values(Streaming{Wires::kTcp, Stream::kOneMessage, 0},
                                           Streaming{Wires::kTcp, Stream::kOneMessage, 1},
                                           Streaming{Wires::kTcp, Stream::kManyMessages, 0},
                                           Streaming{Wires::kTls, Stream::kOneMessage, 0},
                                           Streaming{Wires::kTls, Stream::kOneMessage, 1},
                                           Streaming{Wires::kTls, Stream::kManyMessages, 1}),
                         NameOfStreaming);

TEST_P(StreamTest, AnAbortBehindMoreThanIsReadAheadIsHeardWithin100Milliseconds) {
  EXPECT_TRUE(testing::MostTakeLessThan(milliseconds(100), [&] {
    const absl::Status status = Play(
        [](Communicator& comm) {
          std::vector<float> late(1);
          return comm.Receive(kIdle, late, "late");
        },
        /*leaves=*/false);
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_THAT(Message(status),
                HasSubstr(fmt::format("rank {} aborted the round: drain", GetParam().sender)));
    return ended_ - aborted_;
  }));
}

// A new connection takes longer to be encrypted than who aborts may try to say why.
class SlowHandshakeTest : public StreamTest {};
INSTANTIATE_TEST_SUITE_P(Streams, SlowHandshakeTest,
                         ::testing::Values(Streaming{Wires::kTls, Stream::kOneMessage, 0}),
                         NameOfStreaming);

TEST_P(SlowHandshakeTest, ARankThatLeavesWaitsUntilItsWordsAreOut) {
  constexpr milliseconds kRest{15};  // in each of six turns and more
  Relay relay;
  door_ = relay.Open(group_.options.members[1].address);
  before_abort_ = [&] { relay.Chop(size_t{1} << 20, kRest); };
  const absl::Status status = Play(
      [](Communicator& comm) {
        std::vector<float> late(1);
        return comm.Receive(kIdle, late, "late");
      },
      /*leaves=*/true);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_THAT(Message(status), HasSubstr("rank 0 aborted the round: drain"));
  EXPECT_GT(ended_ - aborted_, 3 * kRest);
}

// The system's answer to what is written to a peer that is gone says less than the peer's words.
TEST_P(StreamTest, ARankThatHasSomethingToSendHearsAnAbortOfAPeerThatHasLeftSince) {
  const std::vector<std::byte> data(kMoreThanIsUnderWay);
  const absl::Status status = Play(
      [&](Communicator& comm) {
        return comm.Run(Operation(), [&](Transport& transport) {
          std::byte late{};
          transport.PostSend(1 - comm.rank(), data);
          return transport.Wait(transport.PostReceive(kIdle, std::span(&late, 1)));
        });
      },
      /*leaves=*/true);
  ASSERT_EQ(status.code(), absl::StatusCode::kAborted) << status;
  EXPECT_THAT(Message(status),
              HasSubstr(fmt::format("rank {} aborted the round: drain", GetParam().sender)));
}

// Ranks 0 to 2 of an allreduce that waits for rank 3: rank 2 has not asked yet for what rank 0 has
// sent it, and hears of no other that fails.
TEST(HeldBackDoublingTest, AnAbortReachesARankThatWaitsForTheLastOfFour) {
  Group group(4, Wires::kTcp);
  group.options.algorithm = Algorithm::kDoubling;
  ++group.options.round;
  Relay relay;
  const std::string door = relay.Open(group.options.members[2].address);
  std::atomic<int> left = 3;
  std::promise<void> over;
  std::shared_future<void> is_over = over.get_future().share();
  testing::RunThreads(4, [&](int rank) {
    CommunicatorOptions options = group.OptionsFor(rank);
    if (rank == 0) options.members[2].address = door;
    const auto created = Communicator::Create(options, group.listener(rank));
    ASSERT_TRUE(created.ok()) << created.status();
    Communicator& comm = **created;
    if (rank < 3) {
      std::thread aborter;
      if (rank == 0) {
        aborter = std::thread([&] {
          AwaitEarly(relay);
          comm.Abort("drain");
        });
      }
      std::vector<float> data(kEarly, 1.0f);
      const absl::Status status = comm.Allreduce(Reduction::kSum, data, data, "gradient");
      EXPECT_THAT(Message(status), HasSubstr("rank 0 aborted the round: drain")) << "rank " << rank;
      if (aborter.joinable()) aborter.join();
      if (--left == 0) over.set_value();
    }
    is_over.wait_for(2 * testing::kPatience);
  });
}

// Rank 1 sends what rank 0 never asks for, and has not asked for what that has sent.
TEST(HeldBackSilenceTest, APeerThatSaysNothingMoreIsNamedAfterOneTimeOut) {
  Group group(2, Wires::kTcp);
  group.options.operation_timeout = testing::kImpatience;
  std::promise<void> over;
  group.Run([&](Communicator& comm) {
    const bool is_first = comm.rank() == 0;
    const std::vector<std::byte> data(is_first ? kEarly : kMoreThanIsUnderWay);
    const absl::Status status = comm.Run(Operation(), [&](Transport& transport) {
      transport.PostSend(1 - comm.rank(), data);
      return transport.Finish();
    });
    if (is_first) {
      over.get_future().wait_for(testing::kPatience);
      return;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 0 ("), HasSubstr("silent")));
    EXPECT_EQ(comm.suspect(), 0);
    over.set_value();
  });
}

// Nothing that it says can be heard any more, so it may as well wait for somebody else.
TEST(HeldBackSilenceTest, APeerThatSentMoreThanIsReadAheadIsNamedAfterThreeTimeOuts) {
  Group group(2, Wires::kTcp);
  group.options.operation_timeout = std::chrono::seconds(1);
  std::promise<void> over;
  group.Run([&](Communicator& comm) {
    EXPECT_TRUE(comm.Barrier("meet").ok()) << comm.status();
    const std::vector<std::byte> early(size_t{1} << 20);
    const std::vector<std::byte> late(kMoreThanIsUnderWay);
    const absl::Status status = comm.Run(Operation(), [&](Transport& transport) -> absl::Status {
      if (comm.rank() == 1) {
        transport.PostSend(0, late);
        return transport.Finish();
      }
      for (size_t posted = 0; posted < kMoreThanIsUnderWay; posted += early.size())
        transport.PostSend(1, early);
      const auto deadline = std::chrono::steady_clock::now() + testing::kPatience;
      while (transport.traffic().bytes_sent < kMoreThanIsReadAhead &&
             std::chrono::steady_clock::now() < deadline) {
        RM_RETURN_IF_ERROR(transport.TrySends().status());
      }
      EXPECT_GE(transport.traffic().bytes_sent, kMoreThanIsReadAhead);
      over.get_future().wait_for(testing::kPatience);
      return transport.Finish();
    });
    EXPECT_FALSE(status.ok());
    if (comm.rank() == 0) return;
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(Message(status),
                AllOf(HasSubstr("rank 0 ("), HasSubstr("no data has moved for 3.")));
    EXPECT_EQ(comm.suspect(), 0);
    over.set_value();
  });
}

}  // namespace
}  // namespace ringmaster::collectives
