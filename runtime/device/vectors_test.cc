#include "runtime/device/vectors.h"

#include <string>

#include <gtest/gtest.h>

#include "common/env.h"

namespace ringmaster::device {
namespace {

// This program runs with the environment that there is, and once more with avx2.
TEST(VectorsTest, NoWiderOnesAreUsedThanTheEnvironmentAllows) {
  const std::string most = env::GetString("RINGMASTER_MAX_VECTORS");
  if (most.empty()) GTEST_SKIP() << "all are allowed";
  EXPECT_FALSE(most == "avx2" && MayUse(Vectors::kAvx512));
  EXPECT_FALSE(MayUse(Vectors::kAmx));
}

TEST(VectorsTest, WhatTheProcessorHasIsUsedWhereTheEnvironmentSaysNothing) {
  if (env::IsSet("RINGMASTER_MAX_VECTORS")) GTEST_SKIP() << "not all are allowed";
#if defined(__x86_64__)
  EXPECT_EQ(MayUse(Vectors::kAvx2),
            __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(MayUse(Vectors::kAvx512), MayUse(Vectors::kAvx2) && __builtin_cpu_supports("avx512f") &&
                                          __builtin_cpu_supports("avx512bw"));
#endif
}

TEST(VectorsTest, WhoeverUsesOneKindMayUseThoseBeforeIt) {
  EXPECT_TRUE(!MayUse(Vectors::kAmx) || MayUse(Vectors::kAvx512));
  EXPECT_TRUE(!MayUse(Vectors::kAvx512) || MayUse(Vectors::kAvx2));
}

}  // namespace
}  // namespace ringmaster::device
