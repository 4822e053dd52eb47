// Waits for something beside the wires, with a clock or a latch in the device's place.
#include "runtime/collectives/nccl/wait.h"

#include <functional>
#include <latch>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/pieces.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives::nccl {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::Group;
using ::testing::HasSubstr;
using testing::Wires;

constexpr int kRanks = 3;
// Longer than ranks that wait for one another in a circle take to find out.
constexpr milliseconds kAWhile{400};
constexpr char kWhat[] = "the device";

absl::StatusOr<bool> Never() {
  return false;
}

// An operation in which each rank owes the next a message until it is done.
absl::Status RunBeside(Communicator& comm, const std::function<absl::Status(Transport&)>& wait) {
  const Operation operation{OperationKind::kBarrier, ElementType::kU8, 0, 0, "step", ""};
  return comm.Run(operation, [&](Transport& t) -> absl::Status {
    t.Connect(RingRank(t.rank(), 1, t.world()));
    t.PostReceive(RingRank(t.rank(), -1, t.world()), {});
    if (const absl::Status status = wait(t); !status.ok()) {
      RM_RETURN_IF_ERROR(LookForCause(t));
      return status;
    }
    t.PostSend(RingRank(t.rank(), 1, t.world()), {});
    return absl::OkStatus();
  });
}

class NcclWaitOverTest : public ::testing::TestWithParam<Wires> {
 protected:
  // Returns when all ranks are connected and none is in an operation any more.
  void Meet(Communicator& comm) {
    ASSERT_TRUE(comm.Barrier("all are there").ok());
    there_.arrive_and_wait();
  }

 private:
  std::latch there_{kRanks};
};

INSTANTIATE_TEST_SUITE_P(AllWires, NcclWaitOverTest, ::testing::ValuesIn(testing::kAllWires),
                         [](const auto& info) { return testing::NameOf(info.param); });

TEST_P(NcclWaitOverTest, RanksThatWaitForTheirDevicesAreNoCircle) {
  Group group(kRanks, GetParam());
  group.Run([](Communicator& comm) {
    const auto end = steady_clock::now() + kAWhile * comm.rank();
    const auto passed = [end]() -> absl::StatusOr<bool> { return steady_clock::now() >= end; };
    EXPECT_TRUE(RunBeside(comm, [&](Transport& t) {
                  return WaitBeside(t, testing::kPatience, kWhat, passed);
                }).ok());
    EXPECT_TRUE(comm.Barrier("after").ok());
  });
}

TEST(NcclWaitTest, ARankThatWaitsForItsDeviceIsNotSilent) {
  Group group(kRanks, Wires::kTcp);
  group.options.operation_timeout = testing::kImpatience;
  group.Run([](Communicator& comm) {
    const auto end =
        steady_clock::now() + (comm.rank() == 0 ? 4 * testing::kImpatience / 3 : kAWhile);
    const auto passed = [end]() -> absl::StatusOr<bool> { return steady_clock::now() >= end; };
    const absl::Status status = RunBeside(
        comm, [&](Transport& t) { return WaitBeside(t, testing::kPatience, kWhat, passed); });
    EXPECT_TRUE(status.ok()) << status;
  });
}

TEST_P(NcclWaitOverTest, EndsWithWhatItWaitsForWhereAllRanksAnswer) {
  Group group(kRanks, GetParam());
  group.Run([&](Communicator& comm) {
    Meet(comm);
    const absl::Status status =
        RunBeside(comm, [](Transport& t) { return WaitBeside(t, kAWhile, kWhat, Never); });
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(Message(status), HasSubstr("the device has not ended in 0.4 s"));
    EXPECT_THAT(Message(status), HasSubstr("barrier of 0 uint8 \"step\""));
  });
}

TEST_P(NcclWaitOverTest, NamesTheRankThatIsSilent) {
  Group group(kRanks, GetParam());
  group.options.operation_timeout = testing::kImpatience;
  std::latch over(kRanks - 1);
  group.Run([&](Communicator& comm) {
    Meet(comm);
    if (comm.rank() == 1) return over.wait();
    const absl::Status status = RunBeside(
        comm, [](Transport& t) { return WaitBeside(t, testing::kPatience, kWhat, Never); });
    EXPECT_THAT(Message(status), HasSubstr("rank 1"));
    EXPECT_THAT(Message(status), HasSubstr("has been silent"));
    EXPECT_EQ(comm.suspect(), 1);
    over.count_down();
  });
}

TEST_P(NcclWaitOverTest, EndsAtOnceWhereAnotherRankAborts) {
  Group group(kRanks, GetParam());
  group.Run([&](Communicator& comm) {
    Meet(comm);
    if (comm.rank() == 1) return comm.Abort("the disk is full");
    const absl::Status status = RunBeside(
        comm, [](Transport& t) { return WaitBeside(t, testing::kPatience, kWhat, Never); });
    EXPECT_THAT(Message(status), HasSubstr("the disk is full"));
  });
}

TEST_P(NcclWaitOverTest, TellsWhyARankWentRatherThanThatTheDeviceLostIt) {
  Group group(kRanks, GetParam());
  std::latch aborted(1);
  group.Run([&](Communicator& comm) {
    Meet(comm);
    if (comm.rank() == 1) {
      comm.Abort("the disk is full");
      return aborted.count_down();
    }
    const auto lost = [&]() -> absl::StatusOr<bool> {
      aborted.wait();
      return absl::InternalError("remote process exited");
    };
    const absl::Status status = RunBeside(
        comm, [&](Transport& t) { return WaitBeside(t, testing::kPatience, kWhat, lost); });
    EXPECT_THAT(Message(status), HasSubstr("the disk is full"));
  });
}

TEST_P(NcclWaitOverTest, AnErrorOfTheDeviceEndsTheRoundOnAllRanksWithItsWords) {
  Group group(kRanks, GetParam());
  group.Run([&](Communicator& comm) {
    Meet(comm);
    const bool broken = comm.rank() == 2;
    const absl::Status status = RunBeside(comm, [&](Transport& t) {
      return WaitBeside(t, testing::kPatience, kWhat, [&]() -> absl::StatusOr<bool> {
        if (broken) return absl::InternalError("an unspecified launch failure");
        return false;
      });
    });
    EXPECT_THAT(Message(status), HasSubstr("rank 2 in barrier of 0 uint8 \"step\""));
    EXPECT_THAT(Message(status), HasSubstr("an unspecified launch failure"));
  });
}

}  // namespace
}  // namespace ringmaster::collectives::nccl
