#include "runtime/collectives/compression/feedback_sum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/compression/one_bit.h"
#include "runtime/collectives/compression/top_k.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::collectives {
namespace {

using ::testing::ElementsAre;
using testing::Group;

using Vector = std::vector<float>;

Vector Random(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Vector values(size);
  for (float& value : values) value = normal(random);
  return values;
}

// What a rank sends of `rest`, the plain way; `rest` keeps the rest.
Vector SendLargest(Vector& rest, size_t k) {
  std::vector<size_t> order(rest.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::abs(rest[a]) > std::abs(rest[b]); });
  Vector sent(rest.size());
  for (size_t i = 0; i < k; ++i) std::swap(sent[order[i]], rest[order[i]]);
  return sent;
}

Vector SendSigns(Vector& rest) {
  Vector sent(rest.size());
  for (size_t begin = 0; begin < rest.size(); begin += OneBitBlock::kValues) {
    const size_t end = std::min(rest.size(), begin + OneBitBlock::kValues);
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += std::abs(double{rest[i]});
    const auto scale = static_cast<float>(sum / static_cast<double>(end - begin));
    for (size_t i = begin; i < end; ++i) {
      sent[i] = rest[i] < 0 ? -scale : scale;
      rest[i] -= sent[i];
    }
  }
  return sent;
}

constexpr size_t kElements = 5003;
constexpr double kShare = 0.03;

struct Method {
  const char* name;
  std::function<std::unique_ptr<FeedbackSum>()> make;
  std::function<Vector(Vector&)> send;
};

class FeedbackSumTest : public ::testing::TestWithParam<Method> {};
INSTANTIATE_TEST_SUITE_P(
    Methods, FeedbackSumTest,
    ::testing::Values(Method{"TopK", [] { return std::make_unique<TopKSum>(kElements, kShare); },
                             [](Vector& rest) { return SendLargest(rest, 151); }},
                      Method{"OneBit", [] { return std::make_unique<OneBitSum>(kElements); },
                             SendSigns}),
    [](const auto& info) { return info.param.name; });

TEST(TopKSumTest, ChecksThatPlacesHaveRoomForThemselvesAndTheShareIsOne) {
  constexpr size_t kMost = (size_t{1} << 31) - 1;
  EXPECT_TRUE(TopKSum::Check(kMost, 1).ok());
  EXPECT_THAT(Message(TopKSum::Check(kMost + 1, 0.01)), ::testing::HasSubstr("2147483648 values"));
  for (const double share : {0.0, -1.0, 1.1, std::nan("")})
    EXPECT_EQ(TopKSum::Check(10, share).code(), absl::StatusCode::kInvalidArgument) << share;
}

TEST_P(FeedbackSumTest, IsThePlainReferencesOverSeveralSteps) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const int world : {1, 2, 3}) {
    Group group(world);
    group.Run([&](Communicator& comm) {
      const std::unique_ptr<FeedbackSum> sum = GetParam().make();
      std::vector<Vector> rest(static_cast<size_t>(world), Vector(kElements));
      for (unsigned step = 0; step < 4; ++step) {
        Vector wanted(kElements);
        Vector mine;
        for (int rank = 0; rank < world; ++rank) {
          const Vector values = Random(kElements, seed + step * 100 + static_cast<unsigned>(rank));
          if (rank == comm.rank()) mine = values;
          Vector& left = rest[static_cast<size_t>(rank)];
          for (size_t i = 0; i < kElements; ++i) left[i] = values[i] + left[i];
          const Vector sent = GetParam().send(left);
          for (size_t i = 0; i < kElements; ++i) wanted[i] += sent[i];
        }
        Vector out(kElements);
        const absl::Status status = sum->Reduce(comm, mine, out, "gradient");
        ASSERT_TRUE(status.ok()) << status;
        sum->Commit();
        ASSERT_EQ(out, wanted) << "step " << step;
        const Vector& left = rest[static_cast<size_t>(comm.rank())];
        ASSERT_TRUE(std::equal(left.begin(), left.end(), sum->residual().begin()));
      }
    });
  }
}

TEST_P(FeedbackSumTest, SendsLittle) {
  Group group(2);
  group.Run([&](Communicator& comm) {
    const std::unique_ptr<FeedbackSum> sum = GetParam().make();
    Vector out(kElements);
    ASSERT_TRUE(sum->Reduce(comm, Random(kElements, 1), out, "gradient").ok());
    EXPECT_LT(comm.stats().of(OperationKind::kAllgather).bytes_sent, kElements * 4 / 12);
  });
}

TEST_P(FeedbackSumTest, LosesNothingInTheLongRun) {
  Group group(1);
  group.Run([&](Communicator& comm) {
    const std::unique_ptr<FeedbackSum> sum = GetParam().make();
    const Vector gradient = Random(kElements, 5);
    std::vector<double> total(kElements);
    Vector out(kElements);
    constexpr int kSteps = 400;
    for (int step = 0; step < kSteps; ++step) {
      ASSERT_TRUE(sum->Reduce(comm, gradient, out, "gradient").ok());
      sum->Commit();
      for (size_t i = 0; i < kElements; ++i) total[i] += out[i];
    }
    for (size_t i = 0; i < kElements; ++i)
      ASSERT_NEAR(total[i] + sum->residual()[i], kSteps * gradient[i], 0.05);
  });
}

TEST_P(FeedbackSumTest, AStepThatDoesNotCountLeavesTheResidual) {
  Group group(1);
  group.Run([&](Communicator& comm) {
    const std::unique_ptr<FeedbackSum> sum = GetParam().make();
    Vector first(kElements), again(kElements);
    const Vector gradient = Random(kElements, 5);
    ASSERT_TRUE(sum->Reduce(comm, gradient, first, "gradient").ok());
    ASSERT_TRUE(sum->Reduce(comm, gradient, again, "gradient").ok());
    EXPECT_EQ(first, again);
  });
}

TEST_P(FeedbackSumTest, ShowsWhatIsNotFinite) {
  Group group(1);
  group.Run([&](Communicator& comm) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      const std::unique_ptr<FeedbackSum> sum = GetParam().make();
      Vector gradient = Random(kElements, 5);
      gradient[4711] = bad;
      Vector out(kElements);
      ASSERT_TRUE(sum->Reduce(comm, gradient, out, "gradient").ok());
      EXPECT_FALSE(std::isfinite(out[4711]));
    }
  });
}

TEST_P(FeedbackSumTest, RefusesAnotherLength) {
  Group group(1);
  group.Run([&](Communicator& comm) {
    Vector out(kElements);
    EXPECT_EQ(GetParam().make()->Reduce(comm, Vector(3), out, "gradient").code(),
              absl::StatusCode::kInvalidArgument);
  });
}

TEST(TopKTest, OfEqualValuesTheFirstAreTaken) {
  const auto largest = [](size_t k) {
    const Vector values = {1, -3, 3, 0, 3, -1};
    std::vector<int32_t> places(k);
    std::vector<uint32_t> scratch(values.size());
    LargestPlaces(values, places, scratch);
    return places;
  };
  EXPECT_THAT(largest(2), ElementsAre(1, 2));
  EXPECT_THAT(largest(4), ElementsAre(0, 1, 2, 4));
  EXPECT_THAT(largest(6), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(TopKTest, RoundsTheShareUp) {
  EXPECT_EQ(TopKSum(10, 0.01).k(), 1U);
  EXPECT_EQ(TopKSum(10, 1).k(), 10U);
  EXPECT_EQ(TopKSum(0, 0.5).k(), 0U);
}

}  // namespace
}  // namespace ringmaster::collectives
