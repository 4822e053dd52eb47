// NCCL itself, with ranks as threads that have a GPU each, or share one where
// NCCL_MULTI_RANK_GPU_ENABLE=1 is set. What needs more of them than this machine has is skipped,
// and says so; that it is refused there is tested everywhere.
#include "runtime/collectives/nccl/nccl.h"

#include <algorithm>
#include <latch>
#include <numeric>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/collectives/testing/calls.h"
#include "runtime/collectives/testing/conformance.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives::nccl {
namespace {

using std::chrono::milliseconds;
using ::testing::AnyOf;
using testing::Group;
using ::testing::HasSubstr;

// Less than a rank waits for the others where it leaves NCCL in order.
constexpr milliseconds kLeaving{2500};

int Devices() {
  static const int devices = CountDevices().value_or(0);
  return devices;
}

TEST(NcclRefusalTest, SaysWhatIsMissingOnAllRanksAndLeavesTheCommunicatorAsItWas) {
  if (MayShareDevices()) GTEST_SKIP() << "ranks may share this machine's GPUs";
  Group group(std::max(2, Devices() + 1));
  group.Run([](Communicator& comm) {
    const absl::Status status = Attach(comm, testing::kPatience);
    const auto code = status.code();
    EXPECT_TRUE(code == absl::StatusCode::kFailedPrecondition ||
                code == absl::StatusCode::kUnimplemented)
        << status;
    EXPECT_THAT(Message(status),
                AnyOf(HasSubstr("rank 0 cannot use NCCL: missing: the NVIDIA driver (libcuda.so.1"),
                      HasSubstr("rank 0 cannot use NCCL: missing: NCCL (libnccl.so.2"),
                      HasSubstr("rank 0 cannot use NCCL: the NVIDIA driver offers no GPU"),
                      HasSubstr("has no GPU of its own"), HasSubstr("built without NCCL")));
    std::vector<float> values(10, 1);
    EXPECT_TRUE(comm.Allreduce(Reduction::kSum, values, values, "after").ok());
    EXPECT_EQ(values, std::vector<float>(10, static_cast<float>(comm.world())));
  });
}

// By the number of ranks.
class NcclTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (Devices() >= GetParam() || (Devices() > 0 && MayShareDevices())) return;
    const auto found = CountDevices();
    GTEST_SKIP() << "needs a GPU for each of " << GetParam() << " ranks: "
                 << (found.ok() ? fmt::format("there are {}", *found) : Message(found.status()));
  }

  // As Group::Run, with NCCL attached.
  void Run(milliseconds timeout, const std::function<void(Communicator&)>& body) {
    Group group(GetParam());
    group.options.operation_timeout = timeout;
    std::latch all(GetParam());
    group.Run([&](Communicator& comm) {
      const absl::Status attached = Attach(comm, timeout);
      all.arrive_and_wait();
      ASSERT_TRUE(attached.ok()) << attached;
      body(comm);
    });
  }
  void Run(const std::function<void(Communicator&)>& body) { Run(testing::kPatience, body); }
};

// Where one rank would be alone with itself, and where the calls are for so many.
class NcclPeersTest : public NcclTest {};
class NcclCallsTest : public NcclTest {};

const auto kRankName = ::testing::PrintToStringParamName();
INSTANTIATE_TEST_SUITE_P(Ranks, NcclTest, ::testing::Values(1, 2, 4), kRankName);
INSTANTIATE_TEST_SUITE_P(Ranks, NcclPeersTest, ::testing::Values(2, 4), kRankName);
INSTANTIATE_TEST_SUITE_P(Ranks, NcclCallsTest, ::testing::Values(testing::kCallWorld), kRankName);

TEST_P(NcclTest, CarriesEveryOperationOfEveryType) {
  Run(testing::ExpectEveryOperationOfEveryType);
}

TEST_P(NcclTest, CombinesByEveryReduction) {
  Run(testing::ExpectEveryReduction);
}

TEST_P(NcclTest, SumsArraysOfManySteps) {
  Run([](Communicator& comm) {
    std::vector<float> values(20'000'003);
    std::iota(values.begin(), values.end(), 0.0f);
    std::vector<float> want = values;
    for (float& value : want) value *= static_cast<float>(comm.world());
    ASSERT_TRUE(comm.Allreduce(Reduction::kSum, values, values, "gradient").ok());
    EXPECT_EQ(values, want);
  });
}

// Unequal parts, groups and messages of two ranks among them.
TEST_P(NcclCallsTest, MakesEveryCallOfTheCommunicator) {
  for (const testing::Call& call : testing::AllCalls()) {
    SCOPED_TRACE(call.name);
    Run([&](Communicator& comm) { EXPECT_TRUE(call.run(comm).ok()); });
  }
}

TEST_P(NcclCallsTest, MakesStartedCallsInOrder) {
  Run(testing::ExpectStartedCallsInOrder);
}

TEST_P(NcclPeersTest, StopsRanksThatDiverge) {
  Run([](Communicator& comm) {
    std::vector<float> values(10, 1);
    const std::string name = comm.rank() == 0 ? "conv1/bias" : "conv1/weight";
    const absl::Status status = comm.Allreduce(Reduction::kSum, values, values, name);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_EQ(comm.Barrier("later").code(), absl::StatusCode::kAborted);
  });
}

TEST_P(NcclPeersTest, NamesTheRankThatIsSilent) {
  std::latch over(GetParam() - 1);
  Run(testing::kImpatience, [&](Communicator& comm) {
    if (comm.rank() == 1) return over.wait();
    std::vector<float> values(10, 1);
    const absl::Status status = comm.Allreduce(Reduction::kSum, values, values, "step");
    EXPECT_THAT(Message(status), HasSubstr("rank 1"));
    EXPECT_EQ(comm.suspect(), 1);
    over.count_down();
  });
}

TEST_P(NcclPeersTest, WakesWhoeverWaitsWhenARankAborts) {
  Run([](Communicator& comm) {
    if (comm.rank() == 0) return comm.Abort("the disk is full");
    std::vector<float> values(10, 1);
    EXPECT_THAT(Message(comm.Allreduce(Reduction::kSum, values, values, "step")),
                HasSubstr("the disk is full"));
  });
}

// Leaving NCCL in order takes all ranks, and a rank whose round has failed need not be there.
TEST_P(NcclPeersTest, ARoundThatFailsBetweenOperationsOfNcclIsLeftAtOnce) {
  Group group(GetParam());
  group.options.round = 1;
  std::latch all(GetParam());
  std::latch first_is_gone(1);
  testing::RunThreads(GetParam(), [&](int rank) {
    std::unique_ptr<Communicator> comm = group.Open(rank);
    const absl::Status attached = Attach(*comm, testing::kPatience);
    all.arrive_and_wait();
    ASSERT_TRUE(attached.ok()) << attached;
    if (rank == 0) comm->Abort("the disk is full");
    EXPECT_FALSE(comm->Barrier("later").ok());
    if (rank > 0) return first_is_gone.wait();  // and stay meanwhile
    const auto start = std::chrono::steady_clock::now();
    comm.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - start, kLeaving);
    first_is_gone.count_down();
  });
}

}  // namespace
}  // namespace ringmaster::collectives::nccl
