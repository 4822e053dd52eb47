#include "common/sha256.h"

#include <gtest/gtest.h>

namespace ringmaster {
namespace {

TEST(Sha256Test, MatchesThePublishedDigestOfAbc) {
  EXPECT_EQ(Hex(Sha256Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, PiecewiseUpdatesGiveTheDigestOfTheWhole) {
  Sha256 hash;
  hash.Update("a");
  hash.Update("");
  hash.Update("bc");
  EXPECT_EQ(hash.Finish(), Sha256Of("abc"));
}

TEST(Sha256Test, RestartForgetsWhatCameBefore) {
  Sha256 hash;
  hash.Update("finished");
  hash.Finish();
  hash.Restart();
  hash.Update("not finished");
  hash.Restart();
  hash.Update("abc");
  EXPECT_EQ(hash.Finish(), Sha256Of("abc"));
}

TEST(Sha256DeathTest, WhatIsFinishedTakesNoMore) {
  Sha256 hash;
  hash.Finish();
  EXPECT_DEATH(hash.Update("more"), "updated after its end");
  EXPECT_DEATH(hash.Finish(), "finished twice");
}

// RFC 4231, test case 2.
TEST(Sha256Test, HmacMatchesThePublishedTestCase) {
  EXPECT_EQ(Hex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Sha256Test, ConstantTimeEqualComparesLengthAndContent) {
  const auto a = Sha256Of("a");
  auto b = a;
  EXPECT_TRUE(ConstantTimeEqual(a, b));
  b[31] ^= 1;
  EXPECT_FALSE(ConstantTimeEqual(a, b));
  EXPECT_FALSE(ConstantTimeEqual(a, std::span(b).first(31)));
}

TEST(Sha256Test, RandomBytesDifferBetweenCalls) {
  EXPECT_NE(RandomBytes(32), RandomBytes(32));
}

}  // namespace
}  // namespace ringmaster
