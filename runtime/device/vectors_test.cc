#include "runtime/device/vectors.h"

#include <string>

#include <gtest/gtest.h>

#include "common/env.h"

namespace ringmaster::device {
namespace {

// This program runs with the environment that there is, and once more with avx2.
TEST(VectorsTest, ThoseThatTheProcessorHasAndTheEnvironmentAllowsAreUsed) {
  const std::string most = env::GetString("RINGMASTER_MAX_VECTORS");
  EXPECT_TRUE(most.empty() || !MayUse(Vectors::kAmx));
#if defined(__x86_64__)
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  EXPECT_EQ(MayUse(Vectors::kAvx2), has_avx2);
  EXPECT_EQ(MayUse(Vectors::kAvx512), has_avx2 && has_avx512 && most != "avx2");
#endif
}

TEST(VectorsTest, WhoeverUsesOneKindMayUseThoseBeforeIt) {
  EXPECT_TRUE(!MayUse(Vectors::kAmx) || MayUse(Vectors::kAvx512));
  EXPECT_TRUE(!MayUse(Vectors::kAvx512) || MayUse(Vectors::kAvx2));
}

}  // namespace
}  // namespace ringmaster::device
