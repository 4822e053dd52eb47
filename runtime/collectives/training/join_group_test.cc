#include "runtime/collectives/training/join_group.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/collectives/testing/group.h"
#include "runtime/collectives/testing/references.h"

namespace ringmaster::collectives {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::Group;
using ::testing::HasSubstr;

// Rank r has steps[r] steps, in which it contributes r + 1; what ranks got, by step, and the last.
struct Seen {
  std::vector<float> sums;
  std::vector<int> active;
  int last = -1;
};

std::vector<Seen> Train(const std::vector<int>& steps, Reduction reduction, int epochs = 1) {
  const int world = static_cast<int>(steps.size());
  std::vector<Seen> seen(steps.size());
  Group group(world);
  group.Run([&](Communicator& comm) {
    JoinGroup joining(comm);
    for (int epoch = 0; epoch < epochs; ++epoch) {
      Seen& mine = seen[static_cast<size_t>(comm.rank())];
      mine = {};
      for (int step = 0; step < steps[static_cast<size_t>(comm.rank())]; ++step) {
        const std::vector<float> in(10, static_cast<float>(comm.rank() + 1));
        std::vector<float> out(10);
        const auto active = joining.Allreduce(reduction, in, out, "step");
        ASSERT_TRUE(active.ok()) << active.status();
        mine.active.push_back(*active);
        mine.sums.push_back(out[9]);
      }
      const auto last = joining.Join();
      ASSERT_TRUE(last.ok()) << last.status();
      mine.last = *last;
    }
  });
  return seen;
}

TEST(JoinGroupTest, SumsOverThoseThatStillHaveData) {
  for (const int epochs : {1, 2}) {
    const auto seen = Train({4, 1, 2}, Reduction::kSum, epochs);
    EXPECT_THAT(seen[0].sums, ElementsAre(6, 4, 1, 1));
    EXPECT_THAT(seen[0].active, ElementsAre(3, 2, 1, 1));
    EXPECT_THAT(seen[2].sums, ElementsAre(6, 4));
    for (const Seen& one : seen) EXPECT_EQ(one.last, 0);
  }
}

// Rank r has the r-th number of steps; in some of them it is alone, in the first nobody is missing.
class JoinOverTest : public ::testing::TestWithParam<testing::Wires> {};
INSTANTIATE_TEST_SUITE_P(Wires, JoinOverTest, ::testing::ValuesIn(testing::kAllWires),
                         [](const auto& wires) { return testing::NameOf(wires.param); });

TEST_P(JoinOverTest, CombinesEveryTypeAndLengthOverThoseThatStillHaveData) {
  constexpr std::array kSteps = {1, 4, 2, 4, 1};
  Group group(kSteps.size(), GetParam());
  group.Run([&](Communicator& comm) {
    JoinGroup joining(comm);
    const int mine = kSteps[static_cast<size_t>(comm.rank())];
    testing::ForEachType([&]<typename T>(T) {
      for (const Reduction reduction : {Reduction::kSum, Reduction::kAverage}) {
        const bool sums = reduction == Reduction::kSum;
        for (int step = 0; step < mine; ++step) {
          int active = 0, sum = 0;
          for (int rank = 0; rank < comm.world(); ++rank) {
            if (kSteps[static_cast<size_t>(rank)] <= step) continue;
            ++active;
            sum += rank + 1;
          }
          for (const size_t count : {0, 1, 7, 1000}) {
            const double value = sums ? comm.rank() + 1 : 6;
            std::vector<T> data(count, testing::NumberAs<T>(value));
            const auto took_part = joining.Allreduce(reduction, data, data, "step");
            ASSERT_TRUE(took_part.ok()) << took_part.status();
            ASSERT_EQ(*took_part, active);
            const std::vector<T> expected(count, testing::NumberAs<T>(sums ? sum : 6));
            ASSERT_TRUE(std::ranges::equal(std::as_bytes(std::span(data)),
                                           std::as_bytes(std::span(expected))))
                << NameOf(ElementTypeOf<T>()) << ", " << NameOf(reduction) << ", step " << step;
          }
        }
        const auto last = joining.Join();
        ASSERT_TRUE(last.ok()) << last.status();
        ASSERT_EQ(*last, 3);
      }
    });
  });
}

TEST(JoinGroupTest, AveragesOverThoseThatStillHaveData) {
  const auto seen = Train({1, 3}, Reduction::kAverage);
  EXPECT_THAT(seen[1].sums, ElementsAre(1.5, 2, 2));
  EXPECT_EQ(seen[0].last, 1);
}

TEST(JoinGroupTest, AnAverageOfLargeValuesDoesNotOverflow) {
  Group group(3);
  group.Run([&](Communicator& comm) {
    JoinGroup joining(comm);
    if (comm.rank() < 2) {
      std::vector<float> large(7, 3e38f);
      EXPECT_EQ(joining.Allreduce(Reduction::kAverage, large, large, "large").value(), 2);
      EXPECT_THAT(large, ::testing::Each(3e38f));
    }
    EXPECT_TRUE(joining.Join().ok());
  });
}

TEST(JoinGroupTest, OfThoseThatJoinAtOnceTheHighestIsTheLast) {
  for (const Seen& one : Train({2, 2, 1}, Reduction::kSum)) EXPECT_EQ(one.last, 1);
  for (const Seen& one : Train({0, 0, 0}, Reduction::kSum)) EXPECT_EQ(one.last, 2);
}

TEST(JoinGroupTest, ZerosChangeNoSign) {
  Group group(2);
  group.Run([&](Communicator& comm) {
    JoinGroup joining(comm);
    if (comm.rank() == 0) {
      for (const ElementType type :
           {ElementType::kF16, ElementType::kBF16, ElementType::kF32, ElementType::kF64}) {
        std::vector<std::byte> value(SizeOf(type));
        value.back() = std::byte{0x80};
        const Elements elements(type, value);
        ASSERT_TRUE(joining.Allreduce(Reduction::kSum, elements, elements, "zero").ok());
        EXPECT_EQ(value.back(), std::byte{0x80}) << NameOf(type);
      }
    }
    EXPECT_TRUE(joining.Join().ok());
  });
}

TEST(JoinGroupTest, NamesRanksThatDiverge) {
  Group group(3);
  group.Run([&](Communicator& comm) {
    JoinGroup joining(comm);
    if (comm.rank() == 1) {
      EXPECT_EQ(joining.Join().status().code(), absl::StatusCode::kFailedPrecondition);
      return;
    }
    std::vector<float> values(comm.rank() == 0 ? 5 : 6);
    const absl::Status status = joining.Allreduce(Reduction::kSum, values, values, "w").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(Message(status), AllOf(HasSubstr("rank 0 is in sum of 5 float32"),
                                       HasSubstr("rank 2 in sum of 6 float32")));
  });
}

TEST(JoinGroupTest, RefusesAPeersIntentOfMoreThanMemoryHolds) {
  Group group(2);
  group.Run([&](Communicator& comm) {
    if (comm.rank() == 1) {
      std::string intent(16, '\0');
      intent[7] = 1;  // the highest byte of the count
      EXPECT_TRUE(comm.AllgatherBytes(std::as_bytes(std::span(intent)), "who takes part").ok());
      return;
    }
    const absl::Status status = JoinGroup(comm).Join().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(Message(status), HasSubstr("more than memory holds"));
  });
}

TEST(JoinGroupTest, RefusesWhatZerosWouldChange) {
  Group group(1);
  group.Run([&](Communicator& comm) {
    std::vector<float> values(5);
    EXPECT_EQ(JoinGroup(comm).Allreduce(Reduction::kMax, values, values, "m").status().code(),
              absl::StatusCode::kInvalidArgument);
  });
}

}  // namespace
}  // namespace ringmaster::collectives
