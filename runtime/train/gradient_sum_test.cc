#include "runtime/train/gradient_sum.h"

#include <atomic>
#include <barrier>
#include <malloc.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status.h"
#include "proto/ringmaster/training/v1alpha1/trainer.api.h"
#include "runtime/collectives/testing/group.h"

namespace ringmaster::train {
namespace {

using ::testing::HasSubstr;

TEST(GradientSumTest, RefusesMoreGradientsThanTopKHasPlacesForNamingTheField) {
  nn::Model layout;
  layout.parameter_floats = size_t{1} << 31;
  training::v1alpha1::Gradients config;
  config.top_k.emplace().share = 0.01;
  float out = 0;
  collectives::testing::Group group(1);
  group.Run([&](collectives::Communicator& comm) {
    const auto sum =
        GradientSum::Create({.layout = &layout, .config = &config}, comm, std::span(&out, 1));
    EXPECT_EQ(sum.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(Message(sum.status()), HasSubstr("spec.trainer.gradients.topK: 2147483648 values"));
  });
}

using training::v1alpha1::Gradients;

struct Method {
  const char* name;
  int shards;
  Gradients config;
};

Gradients Configured(void (*configure)(Gradients&)) {
  Gradients config;
  config.bucket_bytes = 0;
  configure(config);
  return config;
}

const Method kMethods[] = {
    {"EightShards", 8, Configured([](Gradients&) {})},
    {"OneShardEach", 2, Configured([](Gradients&) {})},
    {"Buckets", 8, Configured([](Gradients& g) { g.bucket_bytes = 2 << 20; })},
    {"Ring", 0, Configured([](Gradients&) {})},
    {"Bf16", 8, Configured([](Gradients& g) { g.bf16.emplace(); })},
    {"F16", 8, Configured([](Gradients& g) { g.f16.emplace(); })},
    {"TopK", 8, Configured([](Gradients& g) { g.top_k.emplace().share = 0.001; })},
    {"OneBit", 8, Configured([](Gradients& g) { g.one_bit.emplace(); })},
    {"Adasum", 8, Configured([](Gradients& g) { g.adasum.emplace(); })},
};

class GradientSumMemoryTest : public ::testing::TestWithParam<Method> {};
INSTANTIATE_TEST_SUITE_P(Methods, GradientSumMemoryTest, ::testing::ValuesIn(kMethods),
                         [](const auto& method) { return method.param.name; });

// Of blocks large enough to lie in mappings of their own, which the C library counts.
int64_t MappedBytes() {
  return static_cast<int64_t>(::mallinfo2().hblkhd);
}

TEST_P(GradientSumMemoryTest, SaysHowMuchMemoryItsFirstStepsTake) {
  if (::mallinfo2().arena == 0) GTEST_SKIP() << "the allocator is a sanitizer's";
  constexpr size_t kFloats = size_t{3} << 19;  // 6 MiB
  ASSERT_EQ(::mallopt(M_MMAP_THRESHOLD, 512 << 10), 1);
  const Method& method = GetParam();
  nn::Model layout;
  layout.parameter_floats = kFloats;
  for (const int world : {1, 2}) {
    std::atomic<int64_t> said = 0, taken = 0;
    collectives::testing::Group group(world);
    std::barrier everybody(world);
    group.Run([&](collectives::Communicator& comm) {
      std::vector<float> out(kFloats + 4);
      const std::vector<float> contribution(kFloats + 4, 1.0F);
      everybody.arrive_and_wait();
      if (comm.rank() == 0) taken = -MappedBytes();
      everybody.arrive_and_wait();
      auto sum =
          GradientSum::Create(
              {.shards = method.shards, .batch = 16, .layout = &layout, .config = &method.config},
              comm, out)
              .value();
      for (int step = 0; step < 2; ++step) {
        const collectives::ShardRange owned = sum->owned();
        for (int shard = owned.begin; shard < owned.end; ++shard)
          EXPECT_TRUE(sum->Add(shard, contribution).ok());
        const auto reduced = sum->Reduce();
        EXPECT_TRUE(reduced.ok()) << Message(reduced.status());
        sum->Commit();
      }
      said += static_cast<int64_t>(sum->bytes());
      everybody.arrive_and_wait();
      if (comm.rank() == 0) taken += MappedBytes();
      everybody.arrive_and_wait();
    });
    // Pages are whole, and what goes out and comes in has buffers of its own.
    EXPECT_GE(taken, said) << world << " ranks";
    EXPECT_LE(static_cast<double>(taken), 1.1 * static_cast<double>(said)) << world << " ranks";
  }
}

}  // namespace
}  // namespace ringmaster::train
