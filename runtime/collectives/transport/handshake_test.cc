#include "runtime/collectives/transport/handshake.h"

#include <gtest/gtest.h>

namespace ringmaster::collectives {
namespace {

Membership Member3(int rank) {
  Membership membership;
  membership.job = "ns/job";
  membership.round = 9;
  membership.rank = rank;
  membership.members = {
      {"10.0.0.1:1", "a"}, {"10.0.0.2:1", "b"}, {"10.0.0.3:1", std::string(64, 'c')}};
  membership.key = "sixteen bytes or more";
  return membership;
}

TEST(HandshakeTest, AHelloSurvivesTheWire) {
  const Hello hello = MakeHello(Member3(1), 2, Encryption::kTls);
  const DecodedHello back = DecodeHello(EncodeHello(hello));
  ASSERT_EQ(back.verdict, Verdict::kAccepted);
  EXPECT_EQ(back.hello.job, hello.job);
  EXPECT_EQ(back.hello.round, 9u);
  EXPECT_EQ(back.hello.rank, 1u);
  EXPECT_EQ(back.hello.world, 3u);
  EXPECT_EQ(back.hello.to_rank, 2u);
  EXPECT_EQ(back.hello.encryption, Encryption::kTls);
  EXPECT_EQ(back.hello.pod_uid, "b");
  EXPECT_EQ(back.hello.challenge, hello.challenge);
}

TEST(HandshakeTest, GarbageAndOtherVersionsAreToldApart) {
  HelloBytes bytes = EncodeHello(MakeHello(Member3(0), 1));
  bytes[8] = std::byte{99};
  EXPECT_EQ(DecodeHello(bytes).verdict, Verdict::kWrongVersion);
  bytes[0] = std::byte{'G'};
  EXPECT_EQ(DecodeHello(bytes).verdict, Verdict::kNotAHello);
}

TEST(HandshakeTest, OnlyOtherRanksOfTheListAreTaken) {
  const Membership self = Member3(1);
  const auto judge = [&](auto change) {
    Hello hello = MakeHello(Member3(0), 1);
    change(hello);
    return JudgeHello(self, hello);
  };
  EXPECT_EQ(judge([](Hello&) {}), Verdict::kAccepted);
  EXPECT_EQ(judge([](Hello& h) { h.job[0] ^= 1; }), Verdict::kWrongJob);
  EXPECT_EQ(judge([](Hello& h) { h.pod_uid = "z"; }), Verdict::kNotAMember);
  EXPECT_EQ(judge([](Hello& h) { h.world = 4; }), Verdict::kNotAMember);
  EXPECT_EQ(judge([](Hello& h) { h.to_rank = 2; }), Verdict::kNotAMember);
  EXPECT_EQ(judge([](Hello& h) { h.rank = 1; }), Verdict::kNotAMember);
  EXPECT_EQ(JudgeHello(self, MakeHello(self, 1)), Verdict::kNotAMember);
  EXPECT_EQ(JudgeHello(self, MakeHello(Member3(2), 1)), Verdict::kAccepted);
  EXPECT_EQ(judge([](Hello& h) { h.rank = 0xffffffff; }), Verdict::kNotAMember);
}

TEST(HandshakeTest, BothMustWantTheSameEncryption) {
  const Membership self = Member3(1);
  const auto judge = [&](Encryption dialers, Encryption acceptors) {
    return JudgeHello(self, MakeHello(Member3(0), 1, dialers), acceptors);
  };
  EXPECT_EQ(judge(Encryption::kTls, Encryption::kTls), Verdict::kAccepted);
  EXPECT_EQ(judge(Encryption::kNone, Encryption::kNone), Verdict::kAccepted);
  EXPECT_EQ(judge(Encryption::kTls, Encryption::kNone), Verdict::kWantsTls);
  EXPECT_EQ(judge(Encryption::kNone, Encryption::kTls), Verdict::kWantsNoTls);
}

TEST(HandshakeTest, AProofFitsOneKeyDirectionHelloChallengeAndAcceptor) {
  const Membership self = Member3(0);
  const HelloBytes hello = EncodeHello(MakeHello(self, 1));
  const HelloBytes other_hello = EncodeHello(MakeHello(self, 1));
  const Challenge challenge = NewChallenge();
  const Sha256Digest proof = DialerProof(self, 1, hello, challenge);
  Membership other_key = self;
  other_key.key = "another sixteen bytes";
  EXPECT_EQ(proof, DialerProof(Member3(1), 1, hello, challenge));
  EXPECT_NE(proof, DialerProof(other_key, 1, hello, challenge));
  EXPECT_NE(proof, AcceptorProof(self, 1, hello, challenge));
  EXPECT_NE(proof, DialerProof(self, 1, other_hello, challenge));
  EXPECT_NE(proof, DialerProof(self, 1, hello, NewChallenge()));
  EXPECT_NE(proof, DialerProof(self, 2, hello, challenge));
  EXPECT_NE(proof, ConnectionKey(self, 1, hello, challenge));
}

// Else who has heard one connection's handshake could say that it is another's.
TEST(HandshakeTest, AKeyOfTlsIsOneConnections) {
  const Membership self = Member3(0);
  const HelloBytes hello = EncodeHello(MakeHello(self, 1, Encryption::kTls));
  const HelloBytes other_hello = EncodeHello(MakeHello(self, 1, Encryption::kTls));
  const Challenge challenge = NewChallenge();
  const Sha256Digest key = ConnectionKey(self, 1, hello, challenge);
  EXPECT_EQ(key, ConnectionKey(Member3(1), 1, hello, challenge));
  EXPECT_NE(key, ConnectionKey(self, 1, other_hello, challenge));
  EXPECT_NE(key, ConnectionKey(self, 1, hello, NewChallenge()));
  EXPECT_NE(key, ConnectionKey(self, 2, hello, challenge));
}

TEST(HandshakeTest, AnAnswerSurvivesTheWireAndGarbageIsNone) {
  const Answer answer{Verdict::kNotYet, NewChallenge(), Sha256Of("x")};
  AnswerBytes bytes = EncodeAnswer(answer);
  const auto back = DecodeAnswer(bytes);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->verdict, answer.verdict);
  EXPECT_EQ(back->challenge, answer.challenge);
  EXPECT_EQ(back->proof, answer.proof);
  bytes[4] = std::byte{200};
  EXPECT_FALSE(DecodeAnswer(bytes).has_value());
}

}  // namespace
}  // namespace ringmaster::collectives
