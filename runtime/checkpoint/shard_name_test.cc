#include "runtime/checkpoint/shard_name.h"

#include <gtest/gtest.h>

#include "common/sha256.h"

namespace ringmaster::checkpoint {
namespace {

constexpr CheckpointId kId{.step = 448, .round = 3, .world_size = 4};

TEST(ShardNameTest, ParsesWhatItWrites) {
  EXPECT_EQ(ShardFileName(kId, 2), "step-448-round-3-rank-2-of-4.safetensors");
  const auto finished = ParseShardName(ShardFileName(kId, 2));
  ASSERT_TRUE(finished.has_value());
  EXPECT_EQ(*finished, (ShardName{.id = kId, .rank = 2}));

  const auto temporary = ParseShardName(TemporaryName(kId, 2, "default/digits"));
  ASSERT_TRUE(temporary.has_value());
  EXPECT_TRUE(temporary->temporary);
  EXPECT_EQ(temporary->tag, JobTag("default/digits"));
  EXPECT_NE(temporary->tag, JobTag("default/other"));
}

TEST(ShardNameTest, RefusesEveryOtherName) {
  for (const char* name :
       {"", "notes.txt", "step-448.safetensors", "step-448-round-3-rank-4-of-4.safetensors",
        "step-448-round-3-rank-2-of-4.safetensors.bak", "step-0448-round-3-rank-2-of-4.safetensors",
        "step--1-round-3-rank-2-of-4.safetensors", "step-99999999999999999999-round-3-rank-2-of-4",
        "xstep-448-round-3-rank-2-of-4.safetensors"}) {
    EXPECT_FALSE(ParseShardName(name).has_value()) << name;
  }
}

TEST(ShardNameTest, CombinesDigestsInRankOrderWithALineFeedBehindEach) {
  const std::string digests[] = {"aa", "bb"};
  EXPECT_EQ(CombinedDigest(digests), Hex(Sha256Of("aa\nbb\n")));
}

}  // namespace
}  // namespace ringmaster::checkpoint
