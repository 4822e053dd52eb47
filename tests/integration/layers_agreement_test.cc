// What `ringmaster validate` says of a list of layers is what the runtime does with it: random
// lists are either found right by both or refused by both. The seed is printed;
// RINGMASTER_TEST_SEED repeats a run.
#include <gtest/gtest.h>

#include "common/status.h"
#include "operator/api/validation.h"
#include "runtime/nn/model.h"
#include "tests/support/random_test.h"

namespace ringmaster {
namespace {

using namespace training::v1alpha1;  // NOLINT: every name here is one of the API's

constexpr int kClasses = 3;

class LayersAgreementTest : public testing::RandomTest {
 protected:
  int Between(int least, int most) {
    return least + static_cast<int>(Below(static_cast<std::size_t>(most - least + 1)));
  }

  Conv2d AnyConv2d() {
    return {.channels = Between(1, 6),
            .kernel = Between(1, 4),
            .stride = Between(1, 3),
            .padding = Between(0, 2),
            .dilation = Between(1, 3),
            .groups = Between(1, 2)};
  }

  Pool AnyPool() {
    Pool pool{.kernel = Between(1, 4)};
    if (Below(2) == 0) pool.stride = Between(1, 3);
    pool.padding = Between(0, pool.kernel / 2);
    return pool;
  }

  Layer AnyLayer() {
    switch (Below(10)) {
      case 0:
      case 1:
      case 2:
        return {.conv2d = AnyConv2d()};
      case 3:
        return {.max_pool = AnyPool()};
      case 4:
        return {.average_pool = AnyPool()};
      case 5:
        return {.adaptive_average_pool = AdaptivePool{.size = Between(1, 5)}};
      case 6:
        return {.adaptive_max_pool = AdaptivePool{.size = Between(1, 5)}};
      case 7:
        return {.batch_norm = BatchNorm{}};
      case 8:
        return {.relu = Empty{}};
      default:
        return {.linear = Linear{.features = Between(1, 4)}};
    }
  }

  // Most end as a network should, so that many are right.
  Sequential AnyLayers() {
    Sequential layers;
    for (std::size_t i = Below(5); i > 0; --i) layers.layers.push_back(AnyLayer());
    if (Below(8) != 0) layers.layers.push_back({.flatten = Empty{}});
    if (Below(8) != 0) layers.layers.push_back({.linear = Linear{.features = kClasses}});
    if (layers.layers.empty()) layers.layers.push_back({.relu = Empty{}});
    return layers;
  }

  std::vector<std::int32_t> AnyShape() {
    if (Below(8) == 0) return {Between(1, 9)};
    if (Below(8) == 0) return {Between(1, 4), Between(1, 9)};
    return {Between(1, 4), Between(1, 9), Between(1, 9)};
  }
};

TEST_F(LayersAgreementTest, TheOperatorRefusesWhatTheRuntimeRefuses) {
  constexpr int kLists = 3000;
  int right = 0;
  for (int i = 0; i < kLists; ++i) {
    const Model model{.sequential = AnyLayers()};
    const Data data{.csv = CsvData{.path = "a.csv", .classes = kClasses, .shape = AnyShape()}};
    const auto problems = api::ValidateLayers(*model.sequential, data);
    const std::vector<std::int64_t> shape(data.csv->shape.begin(), data.csv->shape.end());
    const auto built = nn::BuildModel(
        model,
        {.batch = 2, .sample = {tensor::Shape(shape), tensor::DType::kF32}, .classes = kClasses});
    ASSERT_EQ(problems.empty(), built.ok())
        << ToJson(model) << "\n"
        << ToJson(data) << "\n"
        << (problems.empty() ? Message(built.status())
                             : problems.front().path + ": " + problems.front().message);
    if (built.ok()) ++right;
  }
  EXPECT_GT(right, kLists / 20);
  EXPECT_LT(right, kLists * 19 / 20);
}

}  // namespace
}  // namespace ringmaster
