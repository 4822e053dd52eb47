#include "runtime/train/measures.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random_test.h"

namespace ringmaster::train {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// By the definition: every pair of a positive and a negative sample.
double AurocByPairs(const std::vector<Scored>& samples) {
  double won = 0, pairs = 0;
  for (const Scored& positive : samples) {
    for (const Scored& negative : samples) {
      if (!positive.positive || negative.positive) continue;
      pairs += 1;
      if (positive.score > negative.score) won += 1;
      if (positive.score == negative.score) won += 0.5;
    }
  }
  return won / pairs;
}

// By sorting the classes of each row.
int64_t InTopBySorting(int64_t k, const std::vector<float>& logits, int64_t classes,
                       const std::vector<int32_t>& labels) {
  int64_t count = 0;
  for (size_t row = 0; row < labels.size(); ++row) {
    std::vector<int32_t> order(static_cast<size_t>(classes));
    std::iota(order.begin(), order.end(), 0);
    const float* scores = logits.data() + row * static_cast<size_t>(classes);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
    const auto place = std::find(order.begin(), order.end(), labels[row]) - order.begin();
    count += place < k ? 1 : 0;
  }
  return count;
}

class MeasuresTest : public ringmaster::testing::RandomTest {};

TEST_F(MeasuresTest, AurocIsTheShareOfPairsInOrder) {
  for (int round = 0; round < 200; ++round) {
    std::vector<Scored> samples(Below(60) + 2);
    const size_t values = Below(20) + 1;  // few: ties
    for (Scored& sample : samples) {
      sample = {.score = static_cast<double>(Below(values)) - 7.5, .positive = Below(3) == 0};
    }
    samples[0].positive = true;
    samples[1].positive = false;
    const double expected = AurocByPairs(samples);
    EXPECT_DOUBLE_EQ(Auroc(samples).value(), expected);
  }
}

TEST_F(MeasuresTest, TopKIsThePlaceOfTheLabelAmongTheSortedClasses) {
  for (int round = 0; round < 100; ++round) {
    const size_t width = Below(12) + 1;
    const auto classes = static_cast<int64_t>(width), k = static_cast<int64_t>(Below(6) + 1);
    std::vector<int32_t> labels(Below(30) + 1);
    std::vector<float> logits(labels.size() * width);
    for (int32_t& label : labels) label = static_cast<int32_t>(Below(width));
    for (float& logit : logits) logit = static_cast<float>(Below(8)) / 3;
    EXPECT_EQ(CountInTop(k, logits, classes, labels), InTopBySorting(k, logits, classes, labels));
  }
}

TEST(AurocTest, KnowsTheEnds) {
  const auto of = [](std::vector<Scored> samples) { return Auroc(samples); };
  EXPECT_EQ(of({{1, true}, {0, false}, {2, true}}), 1);
  EXPECT_EQ(of({{1, false}, {0, true}}), 0);
  EXPECT_EQ(of({{1, false}, {1, true}, {1, true}}), 0.5);
  EXPECT_EQ(of({{-kInfinity, false}, {kInfinity, true}}), 1);
  // The example that scikit-learn documents roc_auc_score with.
  EXPECT_EQ(of({{0.1, false}, {0.4, false}, {0.35, true}, {0.8, true}}), 0.75);
}

TEST(AurocTest, IsNothingWithoutBothKindsOrWithAScoreThatIsNone) {
  const auto of = [](std::vector<Scored> samples) { return Auroc(samples); };
  EXPECT_FALSE(of({}));
  EXPECT_FALSE(of({{1, true}, {2, true}}));
  EXPECT_FALSE(of({{1, false}}));
  EXPECT_FALSE(of({{1, false}, {kNan, true}}));
}

TEST(TopKTest, ALabelThatIsNoClassIsNeverRight) {
  EXPECT_EQ(CountInTop(2, std::vector{0.F, 1.F, 0.F, 1.F, 0.F, 1.F}, 2, std::vector{-1, 2, 0}), 1);
}

TEST(TopKTest, ANanIsNeverRight) {
  EXPECT_EQ(CountInTop(1, std::vector{kNan, 1.F}, 2, std::vector{0}), 0);
  EXPECT_EQ(CountInTop(1, std::vector{kNan, 1.F}, 2, std::vector{1}), 0);
  EXPECT_EQ(CountInTop(2, std::vector{kNan, 1.F}, 2, std::vector{1}), 1);
  EXPECT_EQ(CountInTop(1, std::vector{0.F, kInfinity}, 2, std::vector{1}), 1);
}

}  // namespace
}  // namespace ringmaster::train
