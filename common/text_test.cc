#include "common/text.h"

#include <gtest/gtest.h>

namespace ringmaster {
namespace {

TEST(TextTest, ThousandsAreSetApart) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(61514), "61,514");
  EXPECT_EQ(WithCommas(-1234567), "-1,234,567");
  EXPECT_EQ(WithCommas(-123), "-123");
}

TEST(TextTest, OneIsNotSpokenOfAsMany) {
  EXPECT_EQ(WithNoun(0, "worker"), "0 workers");
  EXPECT_EQ(WithNoun(1, "worker"), "1 worker");
  EXPECT_EQ(WithNoun(12, "shard file"), "12 shard files");
}

TEST(TextTest, BytesAreMillionsAndFromABillionOnBillions) {
  EXPECT_EQ(WithUnit(0), "0.00 MB");
  EXPECT_EQ(WithUnit(100'000), "0.10 MB");
  EXPECT_EQ(WithUnit(999'000'000), "999.00 MB");
  EXPECT_EQ(WithUnit(1'000'000'000), "1.00 GB");
  EXPECT_EQ(WithUnit(745'200'000'000), "745.20 GB");
}

TEST(TextTest, ATimeHasTheUnitThatSuitsIt) {
  EXPECT_EQ(WithTimeUnit(12.346), "12.35 s");
  EXPECT_EQ(WithTimeUnit(0.0125), "12.5 ms");
  EXPECT_EQ(WithTimeUnit(0.00125), "1.25 ms");
  EXPECT_EQ(WithTimeUnit(0.0009), "900.0 µs");
  EXPECT_EQ(WithTimeUnit(0), "0.0 µs");
}

TEST(TextTest, AStarInAPatternStandsForAnyCharacters) {
  EXPECT_TRUE(Matches("fc.weight", "fc.weight"));
  EXPECT_FALSE(Matches("fc.weight", "fc.weights"));
  EXPECT_FALSE(Matches("fc", "fc.weight"));
  EXPECT_TRUE(Matches("fc.*", "fc.weight"));
  EXPECT_TRUE(Matches("*.bias", "layer1.0.bias"));
  EXPECT_FALSE(Matches("*.bias", "layer1.0.weight"));
  EXPECT_TRUE(Matches("*a*b", "xaxbxab"));
  EXPECT_TRUE(Matches("*", ""));
  EXPECT_FALSE(Matches("", "x"));
}

}  // namespace
}  // namespace ringmaster
