#include "runtime/collectives/communicator.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/testing/relay.h"
#include "runtime/collectives/testing/tripwire.h"

namespace ringmaster::collectives {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::ElementsAre;
using testing::Group;
using ::testing::HasSubstr;

constexpr size_t kSizes[] = {0, 1, 7, 1000, 100003};

// Each operation at world sizes 1 to 6, with frames small enough that the larger arrays need many.
class CollectiveTest : public ::testing::TestWithParam<int> {
 protected:
  CollectiveTest() : group_(GetParam()) { group_.options.segment_bytes = 4096; }
  int world() const { return GetParam(); }

  Group group_;
};

INSTANTIATE_TEST_SUITE_P(Worlds, CollectiveTest, ::testing::Range(1, 7));

// Small integers: every order of addition gives the same float.
float Value(int rank, size_t i) {
  return static_cast<float>((i * 7 + static_cast<size_t>(rank) * 13) % 101);
}

TEST_P(CollectiveTest, AllreduceSumAddsAcrossRanksAndLeavesTheInput) {
  group_.Run([&](Communicator& comm) {
    for (const size_t size : kSizes) {
      std::vector<float> in(size);
      for (size_t i = 0; i < size; ++i) in[i] = Value(comm.rank(), i);
      const std::vector<float> before = in;
      std::vector<float> out(size, -1);
      ASSERT_TRUE(comm.Allreduce(Reduction::kSum, in, out, "gradient").ok()) << comm.status();
      EXPECT_EQ(in, before);
      for (size_t i = 0; i < size; ++i) {
        float sum = 0;
        for (int rank = 0; rank < comm.world(); ++rank) sum += Value(rank, i);
        ASSERT_EQ(out[i], sum) << "element " << i << " of " << size;
      }
    }
  });
}

TEST_P(CollectiveTest, AllreduceSumWorksInPlace) {
  group_.Run([&](Communicator& comm) {
    for (const size_t size : kSizes) {
      std::vector<float> data(size);
      std::vector<float> want(size);
      for (size_t i = 0; i < size; ++i) {
        data[i] = Value(comm.rank(), i);
        for (int rank = 0; rank < comm.world(); ++rank) want[i] += Value(rank, i);
      }
      ASSERT_TRUE(comm.Allreduce(Reduction::kSum, data, data, "gradient").ok()) << comm.status();
      ASSERT_EQ(data, want);
    }
  });
}

TEST_P(CollectiveTest, AllreduceSumGivesEveryRankTheSameBits) {
  std::vector<std::vector<float>> results(world());
  group_.Run([&](Communicator& comm) {
    std::vector<float> in(1003);
    for (size_t i = 0; i < in.size(); ++i) in[i] = 1.0f / (1.0f + Value(comm.rank(), i));
    results[comm.rank()].resize(in.size());
    ASSERT_TRUE(comm.Allreduce(Reduction::kSum, in, results[comm.rank()], "gradient").ok());
  });
  for (const auto& result : results) EXPECT_EQ(result, results[0]);
}

TEST_P(CollectiveTest, AllreduceOfIntegersCombinesExactly) {
  group_.Run([&](Communicator& comm) {
    const int64_t big = int64_t{1} << 60;
    const std::vector<int64_t> in = {comm.rank() + 1, -comm.rank(), big + comm.rank()};
    std::vector<int64_t> out(3);
    ASSERT_TRUE(comm.Allreduce(Reduction::kMin, in, out, "min").ok());
    EXPECT_THAT(out, ElementsAre(1, 1 - comm.world(), big));
    ASSERT_TRUE(comm.Allreduce(Reduction::kMax, in, out, "max").ok());
    EXPECT_THAT(out, ElementsAre(comm.world(), 0, big + comm.world() - 1));
    ASSERT_TRUE(
        comm.Allreduce(Reduction::kSum, std::span(in).first(2), std::span(out).first(2), "sum")
            .ok());
    EXPECT_EQ(out[0], comm.world() * (comm.world() + 1) / 2);
  });
}

TEST_P(CollectiveTest, BroadcastCopiesFromEveryRoot) {
  group_.Run([&](Communicator& comm) {
    for (int root = 0; root < comm.world(); ++root) {
      for (const size_t size : kSizes) {
        std::vector<std::byte> data(size, std::byte(comm.rank() == root ? 40 + root : 0));
        ASSERT_TRUE(comm.Broadcast(root, data, "weights").ok()) << comm.status();
        ASSERT_EQ(data, std::vector<std::byte>(size, std::byte(40 + root)));
      }
    }
  });
}

TEST_P(CollectiveTest, AllgatherJoinsUnequalParts) {
  group_.Run([&](Communicator& comm) {
    for (const size_t size : kSizes) {
      std::vector<size_t> parts(comm.world());
      for (int rank = 0; rank < comm.world(); ++rank)
        parts[rank] = size * static_cast<size_t>(rank) / 2;
      const std::vector<std::byte> mine(parts[comm.rank()], std::byte(comm.rank()));
      std::vector<std::byte> out(std::accumulate(parts.begin(), parts.end(), size_t{0}),
                                 std::byte{99});
      ASSERT_TRUE(comm.Allgather(mine, parts, out, "parts").ok()) << comm.status();
      std::vector<std::byte> want;
      for (int rank = 0; rank < comm.world(); ++rank)
        want.insert(want.end(), parts[rank], std::byte(rank));
      ASSERT_EQ(out, want);
    }
  });
}

TEST_P(CollectiveTest, AllgatherBytesNeedsNoSizes) {
  group_.Run([&](Communicator& comm) {
    const std::string mine(static_cast<size_t>(comm.rank()) * 3000, 'x');
    const auto all = comm.AllgatherBytes(std::as_bytes(std::span(mine)), "hashes");
    ASSERT_TRUE(all.ok()) << all.status();
    ASSERT_EQ(all->size(), static_cast<size_t>(comm.world()));
    for (int rank = 0; rank < comm.world(); ++rank)
      EXPECT_EQ((*all)[rank], std::string(rank * 3000, 'x'));
  });
}

TEST_P(CollectiveTest, BarrierReleasesNobodyBeforeTheLastHasCome) {
  std::atomic<int> entered = 0;
  group_.Run([&](Communicator& comm) {
    for (int lap = 1; lap <= 20; ++lap) {
      ++entered;
      ASSERT_TRUE(comm.Barrier("lap").ok());
      ASSERT_GE(entered.load(), lap * comm.world());
    }
  });
}

TEST_P(CollectiveTest, ManyOperationsFollowOneAnother) {
  group_.Run([&](Communicator& comm) {
    for (int step = 0; step < 200; ++step) {
      const std::vector<float> in(static_cast<size_t>(step), 1.0f);
      std::vector<float> out(in.size());
      ASSERT_TRUE(comm.Allreduce(Reduction::kSum, in, out, "step " + std::to_string(step)).ok())
          << comm.status();
      ASSERT_EQ(out, std::vector<float>(in.size(), static_cast<float>(comm.world())));
    }
  });
}

TEST(CommunicatorTest, OneRankIsIdentityAndSendsNothing) {
  Group group(1);
  group.Run([](Communicator& comm) {
    const std::vector<float> in = {-0.0f, 1.5f};
    std::vector<float> out(2);
    ASSERT_TRUE(comm.Allreduce(Reduction::kSum, in, out, "x").ok());
    EXPECT_EQ(std::memcmp(in.data(), out.data(), 8), 0);
    EXPECT_EQ(comm.stats().of(OperationKind::kAllreduce).bytes_sent, 0u);
    EXPECT_EQ(comm.stats().of(OperationKind::kAllreduce).calls, 1u);
  });
}

TEST(CommunicatorTest, CountsWhatARingMustSend) {
  Group group(4);
  group.options.algorithm = Algorithm::kRing;
  group.Run([](Communicator& comm) {
    const std::vector<float> in(4000, 1.0f);
    std::vector<float> out(in.size());
    ASSERT_TRUE(comm.Allreduce(Reduction::kSum, in, out, "x").ok());
    const OperationStats stats = comm.stats().of(OperationKind::kAllreduce);
    EXPECT_EQ(stats.bytes_sent, 2u * 4000 * sizeof(float) * 3 / 4);
    EXPECT_EQ(stats.bytes_received, stats.bytes_sent);
  });
}

TEST(CommunicatorTest, RanksThatAreForcedToTakeDifferentAlgorithmsAreStopped) {
  Group group(2);
  ++group.options.round;
  testing::RunThreads(2, [&](int rank) {
    CommunicatorOptions mine = group.OptionsFor(rank);
    mine.algorithm = rank == 0 ? Algorithm::kRing : Algorithm::kDoubling;
    const auto comm = Communicator::Create(mine, group.listener(rank));
    ASSERT_TRUE(comm.ok()) << comm.status();
    std::vector<float> data(100, 1.0f);
    const absl::Status status = (*comm)->Allreduce(Reduction::kSum, data, data, "x");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(Message(status), AllOf(HasSubstr("sum by ring"), HasSubstr("sum by doubling")));
  });
}

TEST(CommunicatorTest, AListenerServesRoundAfterRoundOfChangingSize) {
  Group group(4);
  const std::vector<Member> everybody = group.options.members;
  for (const size_t world : {4, 3, 2, 4, 1}) {
    group.options.members.assign(everybody.begin(),
                                 everybody.begin() + static_cast<ptrdiff_t>(world));
    group.Run([](Communicator& comm) { ASSERT_TRUE(comm.Barrier("b").ok()) << comm.status(); });
  }
}

// How many descriptors this process may have, for a while.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t most) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{.rlim_cur = std::min(most, before_.rlim_max), .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

// Only three of them are there, and talk to one another.
TEST(CommunicatorTest, ARoundMayHaveMoreRanksThanThereAreDescriptors) {
  constexpr rlim_t kDescriptors = 300;
  Group group(3);
  group.options.members.resize(2 * kDescriptors, group.options.members.back());
  const DescriptorLimit limit(kDescriptors);
  ++group.options.round;
  testing::RunThreads(3, [&](int rank) {
    const auto comm = group.Open(rank);
    const auto present = comm->Group(std::vector{0, 1, 2}, "present");
    ASSERT_TRUE(present.ok()) << present.status();
    std::vector<float> data(1000, 1.0f);
    ASSERT_TRUE((*present)->Allreduce(Reduction::kSum, data, data, "x").ok()) << comm->status();
    EXPECT_EQ(data, std::vector<float>(1000, 3.0f));
    ASSERT_TRUE((*present)->Barrier("end").ok()) << comm->status();
  });
}

TEST(CommunicatorTest, RefusesARoundThatIsNotNewer) {
  Group group(1);
  group.options.round = 5;
  ASSERT_NE(group.Open(0), nullptr);
  for (const uint64_t round : {5, 4}) {
    group.options.round = round;
    const auto again = Communicator::Create(group.OptionsFor(0), group.listener(0));
    EXPECT_EQ(again.status().code(), absl::StatusCode::kFailedPrecondition);
  }
}

TEST(CommunicatorTest, NamesTheOptionThatIsWrong) {
  Group group(2);
  const auto error = [&](auto change) {
    CommunicatorOptions options = group.OptionsFor(0);
    change(options);
    const auto made = Communicator::Create(options, group.listener(0));
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
    return Message(made.status());
  };
  EXPECT_THAT(error([](auto& o) { o.rank = 2; }), HasSubstr("rank: 2"));
  EXPECT_THAT(error([](auto& o) { o.key = "short"; }), HasSubstr("key"));
  EXPECT_THAT(error([](auto& o) { o.members.clear(); }), HasSubstr("members"));
  EXPECT_THAT(error([](auto& o) { o.members[1].pod_uid.clear(); }),
              HasSubstr("members[1].pod_uid"));
  EXPECT_THAT(error([](auto& o) { o.segment_bytes = 3; }), HasSubstr("segment_bytes"));
  EXPECT_THAT(error([](auto& o) { o.segment_bytes = (size_t{1} << 30) + 1; }),
              HasSubstr("segment_bytes: 1073741825"));
}

TEST(CommunicatorTest, RefusesWrongLengthsWithoutFailingTheRound) {
  Group group(2);
  group.Run([](Communicator& comm) {
    std::vector<float> four(4, 1.0f);
    std::vector<float> three(3);
    EXPECT_EQ(comm.Allreduce(Reduction::kSum, four, three, "x").code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(
        comm.Allreduce(Reduction::kSum, std::span(four).first(3), std::span(four).last(3), "x")
            .code(),
        absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(comm.Broadcast(2, {}, "x").code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(comm.Barrier("still alive").ok());
  });
}

}  // namespace
}  // namespace ringmaster::collectives
