#include "runtime/collectives/transport/frame.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace ringmaster::collectives {
namespace {

TEST(FrameTest, AHeaderSurvivesTheWire) {
  const FrameHeader header{FrameType::kAlive, 7, 11, 0x0123456789abcdef, 0};
  const auto back = DecodeFrameHeader(EncodeFrameHeader(header));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->type, header.type);
  EXPECT_EQ(back->round, header.round);
  EXPECT_EQ(back->sequence, header.sequence);
  EXPECT_EQ(back->tag, header.tag);
  EXPECT_EQ(back->length, header.length);
}

TEST(FrameTest, RefusesWhatIsNoFrame) {
  const FrameHeaderBytes good = EncodeFrameHeader({FrameType::kData, 1, 1, 1, 100});
  for (const size_t at : {0u, 3u, 4u, 5u, 39u}) {
    FrameHeaderBytes bad = good;
    bad[at] ^= std::byte{0x70};
    EXPECT_EQ(DecodeFrameHeader(bad).status().code(), absl::StatusCode::kDataLoss) << "byte " << at;
  }
  const FrameHeaderBytes longer =
      EncodeFrameHeader({FrameType::kAbort, 1, 1, 1, kMaxControlBytes + 1});
  EXPECT_FALSE(DecodeFrameHeader(longer).ok());
}

TEST(FrameTest, AnAbortCarriesCodeSuspectAndText) {
  for (const int suspect : {-1, 0, 5}) {
    const Failure sent{absl::DeadlineExceededError("rank 5 is silent"), suspect};
    const Failure got = AbortedBy(AbortTag(sent), "rank 5 is silent");
    EXPECT_EQ(got.status, sent.status);
    EXPECT_EQ(got.suspect, suspect);
  }
  EXPECT_EQ(AbortedBy(0, "x").status.code(), absl::StatusCode::kUnknown);
}

TEST(FrameTest, AnAbortThatBlamesARankBeyondAllNumbersBlamesNoneOfAGroup) {
  for (const uint64_t blamed : {uint64_t{0x7fffffff}, uint64_t{0x80000000}, uint64_t{0xffffffff}})
    EXPECT_EQ(AbortedBy(blamed << 32, "x").suspect, std::numeric_limits<int>::max() - 1);
}

}  // namespace
}  // namespace ringmaster::collectives
