// Every rank of `mpirun -n N` runs these tests together. The operations are those of the benchmark,
// which verifies what it measures.
#include "runtime/collectives/transport/mpi/mpi_transport.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <mpi.h>
#include <span>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/testing/calls.h"
#include "runtime/collectives/testing/conformance.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives::mpi {
namespace {

using ::testing::HasSubstr;

constexpr size_t kSegmentBytes = 1024;  // small, so that there are many

std::unique_ptr<Communicator> Open(std::chrono::milliseconds timeout = std::chrono::seconds(60),
                                   size_t segment_bytes = kSegmentBytes) {
  auto transport = MpiTransport::Create(MPI_COMM_WORLD, 1, timeout);
  EXPECT_TRUE(transport.ok()) << transport.status();
  if (!transport.ok()) return nullptr;
  return std::make_unique<Communicator>(std::move(*transport), segment_bytes);
}

TEST(MpiTransportTest, CarriesEveryOperationOfEveryType) {
  const auto communicator = Open();
  ASSERT_NE(communicator, nullptr);
  testing::ExpectEveryOperationOfEveryType(*communicator);
  EXPECT_GT(communicator->stats().of(OperationKind::kAllreduce).bytes_received, 0u);
}

TEST(MpiTransportTest, CombinesByEveryReduction) {
  const auto communicator = Open();
  ASSERT_NE(communicator, nullptr);
  testing::ExpectEveryReduction(*communicator);
}

TEST(MpiTransportTest, RunsStartedCallsInTheOrderOfTheProgram) {
  const auto communicator = Open();
  ASSERT_NE(communicator, nullptr);
  testing::ExpectStartedCallsInOrder(*communicator);
}

// By every algorithm, of unequal parts, by groups and by messages of two ranks among them.
TEST(MpiTransportTest, MakesEveryCallOfTheCommunicator) {
  for (const testing::Call& call : testing::AllCalls()) {
    auto transport = MpiTransport::Create(MPI_COMM_WORLD, 1, std::chrono::seconds(60));
    ASSERT_TRUE(transport.ok()) << transport.status();
    Communicator communicator(std::move(*transport), testing::kCallSegmentBytes, call.algorithm);
    const absl::Status status = call.run(communicator);
    EXPECT_TRUE(status.ok()) << call.name << ": " << status;
  }
}

TEST(MpiTransportTest, AnAbortEndsStartedCalls) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto communicator = Open();
  ASSERT_NE(communicator, nullptr);
  // MPI may write to what was posted as long as the process lives.
  static std::vector<float> values(10, 1);
  if (communicator->rank() == 0) {
    communicator->Abort("the disk is full");
  } else {
    const Handle first = communicator->AllreduceAsync(Reduction::kSum, values, values, "first");
    const Handle second = communicator->AllreduceAsync(Reduction::kSum, values, values, "second");
    EXPECT_THAT(std::string(first.Wait().message()), HasSubstr("the disk is full"));
    EXPECT_EQ(second.Wait().code(), absl::StatusCode::kAborted) << second.status();
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(MpiTransportTest, StopsRanksThatDiverge) {
  const auto communicator = Open();
  ASSERT_NE(communicator, nullptr);
  std::vector<float> values(10, 1);
  const std::string name = communicator->rank() == 0 ? "conv1/bias" : "conv1/weight";
  const absl::Status status = communicator->Allreduce(Reduction::kSum, values, values, name);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("has diverged"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("conv1/"));
  EXPECT_EQ(communicator->Barrier("later").code(), absl::StatusCode::kAborted);
}

TEST(MpiTransportTest, NamesTheRankThatIsSilent) {
  MPI_Barrier(MPI_COMM_WORLD);  // the clock starts here
  const auto communicator = Open(std::chrono::seconds(3));
  ASSERT_NE(communicator, nullptr);
  std::vector<float> values(10, 1);
  if (communicator->rank() != 1) {
    const absl::Status status = communicator->Allreduce(Reduction::kSum, values, values, "step");
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 was silent for 3000 ms"));
    EXPECT_EQ(communicator->suspect(), 1);
  }
  MPI_Barrier(MPI_COMM_WORLD);  // rank 1 was here, outside of the communicator, all the time
}

// Between two messages of one operation; a survivor lets it go on, and it hears that all is over.
TEST(MpiTransportTest, NamesARankThatIsStoppedInAnOperation) {
  const auto communicator = Open(std::chrono::seconds(3));
  ASSERT_NE(communicator, nullptr);
  int victim = getpid();
  MPI_Bcast(&victim, 1, MPI_INT, 1, MPI_COMM_WORLD);
  static std::byte words[2];  // as long as the process lives
  Operation operation;
  operation.name = "two words of rank 1";
  const absl::Status status = communicator->Run(operation, [](Transport& t) -> absl::Status {
    for (std::byte& word : words) {
      if (t.rank() != 1) {
        RM_RETURN_IF_ERROR(t.Wait(t.PostReceive(1, std::span(&word, 1))));
        continue;
      }
      for (int rank = 0; rank < t.world(); ++rank) {
        if (rank != 1) t.PostSend(rank, std::span(&word, 1));
      }
      RM_RETURN_IF_ERROR(t.Look(/*progress=*/true));
      if (&word == &words[0]) raise(SIGSTOP);
    }
    return t.Wait(t.PostReceive((t.rank() + 1) % t.world(), {}));
  });
  if (communicator->rank() != 1) {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 was silent for 3000 ms"));
    EXPECT_EQ(communicator->suspect(), 1);
    kill(victim, SIGCONT);
  } else {
    EXPECT_FALSE(status.ok());
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// By itself: nothing of the job is left then. The others' own time-out is longer than the test may
// take.
TEST(MpiTransportTest, MpirunEndsTheJobOfARankThatIsKilledInAnOperation) {
  const auto communicator = Open(std::chrono::seconds(600));
  ASSERT_NE(communicator, nullptr);
  Operation operation;
  operation.name = "a word of rank 1";
  std::byte word{};
  communicator
      ->Run(operation,
            [&](Transport& t) -> absl::Status {
              if (t.rank() == 1) raise(SIGKILL);
              return t.Wait(t.PostReceive(1, std::span(&word, 1)));
            })
      .IgnoreError();
  FAIL() << "rank " << communicator->rank() << " goes on without rank 1";
}

TEST(MpiTransportTest, ARankThatWaitsForSomethingElseLooksAndIsNotSilent) {
  constexpr std::chrono::seconds kTimeout{3};
  const auto communicator = Open(kTimeout);
  ASSERT_NE(communicator, nullptr);
  const auto end = std::chrono::steady_clock::now() + 4 * kTimeout / 3;
  Operation operation;
  operation.name = "rank 0 has a device";
  const absl::Status status = communicator->Run(operation, [&](Transport& t) -> absl::Status {
    if (t.rank() != 0) return t.Wait(t.PostReceive(0, {}));
    while (std::chrono::steady_clock::now() < end) {
      if (const absl::Status looked = t.Look(/*progress=*/true); !looked.ok()) return looked;
    }
    for (int rank = 1; rank < t.world(); ++rank) t.PostSend(rank, {});
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(MpiTransportTest, NamesASilentRankToOneThatOnlySends) {
  // One message, of more than MPI sends without an answer; it may be read as long as the process
  // lives.
  static const std::vector<float> data(1 << 20);
  const auto communicator = Open(std::chrono::seconds(3), data.size() * sizeof(float));
  ASSERT_NE(communicator, nullptr);
  if (communicator->rank() == 0) {
    const absl::Status status = communicator->Send(1, data, "to nobody");
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 was silent"));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(MpiTransportTest, EndsWhereAllWaitForOneAnother) {
  const auto communicator = Open(std::chrono::seconds(3));
  ASSERT_NE(communicator, nullptr);
  std::vector<float> data(10);
  const int next = (communicator->rank() + 1) % communicator->world();
  const absl::Status status = communicator->Receive(next, data, "nobody sends");
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("waits like rank"));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(MpiTransportTest, WakesWhoeverWaitsWhenARankAborts) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto communicator = Open();
  ASSERT_NE(communicator, nullptr);
  if (communicator->rank() == 0) {
    communicator->Abort("the disk is full");
  } else {
    const absl::Status status = communicator->Barrier("step");
    EXPECT_THAT(std::string(status.message()), HasSubstr("the disk is full"));
  }
  EXPECT_EQ(communicator->status().code(), absl::StatusCode::kAborted);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Processes of one machine have one clock.
TEST(MpiTransportTest, AnAbortIsHeardByEveryRankWithin100Milliseconds) {
  using std::chrono::steady_clock;
  EXPECT_TRUE(testing::MostTakeLessThan(std::chrono::milliseconds(100), [] {
    const auto communicator = Open();
    if (communicator == nullptr) MPI_Abort(MPI_COMM_WORLD, 1);  // the others would wait
    EXPECT_TRUE(communicator->Barrier("before").ok()) << communicator->status();
    MPI_Barrier(MPI_COMM_WORLD);  // all have left it
    int64_t aborted = steady_clock::now().time_since_epoch().count();
    if (communicator->rank() == 0) {
      communicator->Abort("drain");
    } else {
      EXPECT_EQ(communicator->Barrier("step").code(), absl::StatusCode::kAborted)
          << communicator->status();
    }
    const int64_t heard = steady_clock::now().time_since_epoch().count();
    int64_t heard_last = 0;
    MPI_Bcast(&aborted, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&heard, &heard_last, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    return steady_clock::duration(heard_last - aborted);
  }));
}

TEST(MpiTransportTest, RefusesATimeoutThatIsNone) {
  EXPECT_EQ(MpiTransport::Create(MPI_COMM_WORLD, 1, std::chrono::milliseconds(0)).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ringmaster::collectives::mpi

int main(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  ::testing::InitGoogleMock(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  MPI_Finalize();
  return failed;
}
