// Send, Receive and SendReceive: what arrives, who is touched, and how a mismatch is told.
#include <barrier>
#include <chrono>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/collectives/communicator.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives {
namespace {

using std::chrono::steady_clock;
using ::testing::AllOf;
using testing::Group;
using ::testing::HasSubstr;

std::vector<int64_t> Counting(size_t count, int64_t from) {
  std::vector<int64_t> values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

TEST(PointToPointTest, WhatIsSentArrives) {
  Group group(3);
  group.options.segment_bytes = 256;
  group.Run([](Communicator& comm) {
    for (const size_t count : {0, 1, 7, 1000, 100'000}) {
      for (int from = 0; from < comm.world(); ++from) {
        const int to = (from + 1) % comm.world();
        if (comm.rank() == from) {
          ASSERT_TRUE(comm.Send(to, Counting(count, from), "x").ok()) << comm.status();
        } else if (comm.rank() == to) {
          std::vector<int64_t> got(count);
          ASSERT_TRUE(comm.Receive(from, got, "x").ok()) << comm.status();
          ASSERT_EQ(got, Counting(count, from));
        }
      }
    }
  });
}

TEST(PointToPointTest, OthersAreNotTouched) {
  Group group(4);
  group.Run([](Communicator& comm) {
    // Ranks 0 and 1 talk often, 2 and 3 once, and all meet between and after.
    for (int lap = 0; lap < 3; ++lap) {
      const int peer = comm.rank() ^ 1;
      for (int i = 0; i < (comm.rank() < 2 ? 20 : 1); ++i) {
        std::vector<int64_t> value = {i};
        const absl::Status status =
            comm.rank() < peer ? comm.Send(peer, value, "talk") : comm.Receive(peer, value, "talk");
        ASSERT_TRUE(status.ok()) << status;
      }
      ASSERT_TRUE(comm.Barrier("meet").ok()) << comm.status();
    }
  });
}

TEST(PointToPointTest, ASenderMayRunAheadOfItsReceiver) {
  for (const testing::Wires wires : testing::kAllWires) {
    Group group(2, wires);
    std::barrier sent(2);
    group.Run([&](Communicator& comm) {
      std::vector<int64_t> value = {0};
      for (int64_t i = 0; i < 50 && comm.rank() == 0; ++i) {
        value[0] = i;
        ASSERT_TRUE(comm.Send(1, value, "x").ok()) << NameOf(wires) << ": " << comm.status();
        if (i == 0) sent.arrive_and_wait();
      }
      if (comm.rank() == 0) return;
      sent.arrive_and_wait();
      for (int64_t i = 0; i < 50; ++i) {
        ASSERT_TRUE(comm.Receive(0, value, "x").ok()) << NameOf(wires) << ": " << comm.status();
        ASSERT_EQ(value[0], i);
      }
    });
  }
}

TEST(PointToPointTest, AllRanksShiftAroundARingAtOnce) {
  for (const int world : {2, 3, 5}) {
    Group group(world);
    group.options.segment_bytes = 1024;
    group.Run([](Communicator& comm) {
      // More than sockets buffer: it must go both ways at once.
      for (const size_t count : {size_t{0}, size_t{3}, size_t{1} << 20}) {
        const int next = (comm.rank() + 1) % comm.world();
        const int previous = (comm.rank() + comm.world() - 1) % comm.world();
        const auto length = [&](int rank) { return count + static_cast<size_t>(rank); };
        const std::vector<int64_t> out = Counting(length(comm.rank()), comm.rank());
        std::vector<int64_t> in(length(previous));
        ASSERT_TRUE(comm.SendReceive(next, out, previous, in, "shift").ok()) << comm.status();
        ASSERT_EQ(in, Counting(length(previous), previous));
      }
    });
  }
}

TEST(PointToPointTest, NobodyAndOneselfAreNoPeers) {
  Group group(2);
  group.Run([](Communicator& comm) {
    std::vector<float> data(3);
    std::vector<int32_t> other(3);
    for (const int peer : {-1, 2, comm.rank()}) {
      EXPECT_EQ(comm.Send(peer, data, "x").code(), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(comm.Receive(peer, data, "x").code(), absl::StatusCode::kInvalidArgument);
    }
    const int peer = 1 - comm.rank();
    EXPECT_EQ(comm.SendReceive(peer, data, peer, other, "x").code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(comm.Barrier("still alive").ok());
  });
}

// Rank 0 makes one call and rank 1 another that does not fit: both are told soon, and both
// operations are named.
class MismatchTest : public ::testing::Test {
 protected:
  using Call = std::function<absl::Status(Communicator&)>;

  void ExpectNamed(const Call& at_0, const Call& at_1, const std::string& text_0,
                   const std::string& text_1) {
    const auto start = steady_clock::now();
    Group group(3);
    std::barrier told(3);
    group.Run([&](Communicator& comm) {
      EXPECT_TRUE(comm.Barrier("meet").ok());
      told.arrive_and_wait();
      if (comm.rank() == 2) return told.arrive_and_wait();
      absl::Status status = comm.rank() == 0 ? at_0(comm) : at_1(comm);
      // Whoever only sends may be through before the other looks.
      if (status.ok()) status = comm.Receive(1 - comm.rank(), one_[comm.rank()], "next");
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 0 ("), HasSubstr("rank 1 ("),
                                         HasSubstr(text_0), HasSubstr(text_1)));
      told.arrive_and_wait();
    });
    EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(20));
  }

  template <typename T>
  static Call Send(int to, size_t count, const std::string& name) {
    return [=](Communicator& c) { return c.Send(to, std::vector<T>(count), name); };
  }
  template <typename T>
  static Call Receive(int from, size_t count, const std::string& name) {
    return [=](Communicator& c) {
      std::vector<T> data(count);
      return c.Receive(from, data, name);
    };
  }

 private:
  std::vector<float> one_[2] = {{0}, {0}};
};

TEST_F(MismatchTest, OfCountsIsNamed) {
  ExpectNamed(Send<float>(1, 100, "x"), Receive<float>(0, 99, "x"), "send of 100 float32 \"x\"",
              "send of 99 float32 \"x\", from rank 0 to rank 1");
}

TEST_F(MismatchTest, OfAnEmptyMessageIsNamed) {
  ExpectNamed(Send<float>(1, 0, "x"), Receive<float>(0, 1, "x"), "send of 0", "send of 1");
  ExpectNamed(Send<float>(1, 1, "x"), Receive<float>(0, 0, "x"), "send of 1", "send of 0");
}

TEST_F(MismatchTest, OfTypesIsNamed) {
  ExpectNamed(Send<float>(1, 4, "x"), Receive<int32_t>(0, 4, "x"), "4 float32", "4 int32");
}

TEST_F(MismatchTest, OfNamesIsNamed) {
  ExpectNamed(Send<float>(1, 4, "left"), Receive<float>(0, 4, "right"), "\"left\"", "\"right\"");
}

TEST_F(MismatchTest, OfTwoThatBothReceiveIsNamed) {
  ExpectNamed(Receive<float>(1, 4, "x"), Receive<float>(0, 4, "x"), "from rank 1 to rank 0",
              "from rank 0 to rank 1");
}

TEST_F(MismatchTest, OfTwoThatBothSendIsNamed) {
  constexpr size_t kMoreThanSocketsHold = 4'000'000;
  ExpectNamed(Send<float>(1, kMoreThanSocketsHold, "x"), Send<float>(0, kMoreThanSocketsHold, "x"),
              "from rank 1 to rank 0", "from rank 0 to rank 1");
}

TEST_F(MismatchTest, OfAReceiveAndAnOperationOfAllIsNamed) {
  ExpectNamed(
      Receive<float>(1, 4, "x"), [](Communicator& c) { return c.Barrier("epoch end"); },
      "send of 4 float32 \"x\"", "barrier of 0 uint8 \"epoch end\"");
}

TEST_F(MismatchTest, OfWhatIsExchangedIsNamed) {
  const auto exchange = [](size_t send, size_t receive) {
    return [=](Communicator& c) {
      std::vector<float> in(receive);
      return c.SendReceive(1 - c.rank(), std::vector<float>(send), 1 - c.rank(), in, "halo");
    };
  };
  ExpectNamed(exchange(3, 4), exchange(5, 3), "this rank's 3 to rank 1, 4 from rank 1",
              "this rank's 5 to rank 0, 3 from rank 0");
}

TEST(PointToPointTest, ARankThatNeverSendsIsNamed) {
  Group group(3);
  std::barrier done(3);
  group.options.operation_timeout = testing::kImpatience;
  group.Run([&](Communicator& comm) {
    EXPECT_TRUE(comm.Barrier("meet").ok());
    done.arrive_and_wait();
    if (comm.rank() == 0) {
      std::vector<float> data(4);
      const absl::Status status = comm.Receive(2, data, "x");
      EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
      EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 2 ("), HasSubstr("silent"),
                                         HasSubstr("send of 4 float32 \"x\"")));
      EXPECT_EQ(comm.suspect(), 2);
    }
    done.arrive_and_wait();
  });
}

}  // namespace
}  // namespace ringmaster::collectives
