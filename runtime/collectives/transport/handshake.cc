#include "runtime/collectives/transport/handshake.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "runtime/collectives/transport/wire.h"

namespace ringmaster::collectives {
namespace {

constexpr std::string_view kHelloMagic = "RINGMSTR";
constexpr std::string_view kAnswerMagic = "RMA1";
// What follows the handshake is part of the protocol. Without TLS it is what it was before there
// was any, so that workers of two releases may meet in a round.
constexpr uint32_t kPlainVersion = 3;
constexpr uint32_t kTlsVersion = 4;
constexpr size_t kUidBytes = 64;

Sha256Digest Proof(std::string_view direction, const Membership& self, int to_rank,
                   const HelloBytes& hello, const Challenge& challenge) {
  std::string message(direction);
  message.append(reinterpret_cast<const char*>(hello.data()), hello.size());
  message.append(reinterpret_cast<const char*>(challenge.data()), challenge.size());
  message.append(std::to_string(to_rank)).append("/");
  message.append(self.members[to_rank].pod_uid);
  return HmacSha256(self.key, message);
}

}  // namespace

const char* VerdictText(Verdict verdict) {
  static constexpr const char* kTexts[kVerdicts] = {
      "is accepted",
      "is of a round that is not open yet",
      "is of a round that is over",
      "is of another job",
      "is not a member of the round",
      "does not know the round's key",
      "speaks another version of the protocol",
      "did not send a hello",
      "wants TLS, where the other side is set to none",
      "wants no TLS, where the other side is set to it",
  };
  return kTexts[static_cast<size_t>(verdict)];
}

Challenge NewChallenge() {
  Challenge challenge;
  const std::string random = RandomBytes(challenge.size());
  std::memcpy(challenge.data(), random.data(), challenge.size());
  return challenge;
}

Hello MakeHello(const Membership& self, int to_rank, Encryption encryption) {
  Hello hello;
  hello.job = Sha256Of(self.job);
  hello.round = self.round;
  hello.rank = static_cast<uint32_t>(self.rank);
  hello.world = static_cast<uint32_t>(self.world());
  hello.to_rank = static_cast<uint32_t>(to_rank);
  hello.encryption = encryption;
  hello.pod_uid = self.members[self.rank].pod_uid;
  hello.challenge = NewChallenge();
  return hello;
}

HelloBytes EncodeHello(const Hello& hello) {
  HelloBytes bytes{};
  char uid[kUidBytes] = {};
  std::copy_n(hello.pod_uid.data(), std::min(hello.pod_uid.size(), kUidBytes), uid);
  WireWriter writer(bytes);
  writer.PutBytes(kHelloMagic.data(), kHelloMagic.size());
  writer.Put(hello.encryption == Encryption::kNone ? kPlainVersion : kTlsVersion);
  writer.Put(static_cast<uint32_t>(hello.pod_uid.size()));
  writer.PutBytes(hello.job.data(), hello.job.size());
  writer.Put(hello.round);
  writer.Put(hello.rank);
  writer.Put(hello.world);
  writer.Put(hello.to_rank);
  writer.Put(uint32_t{0});
  writer.PutBytes(uid, sizeof(uid));
  writer.PutBytes(hello.challenge.data(), hello.challenge.size());
  return bytes;
}

DecodedHello DecodeHello(const HelloBytes& bytes) {
  WireReader reader(bytes);
  char magic[8];
  reader.GetBytes(magic, sizeof(magic));
  if (std::string_view(magic, sizeof(magic)) != kHelloMagic) return {Verdict::kNotAHello, {}};
  const uint32_t version = reader.Get<uint32_t>();
  if (version != kPlainVersion && version != kTlsVersion) return {Verdict::kWrongVersion, {}};
  const uint32_t uid_bytes = reader.Get<uint32_t>();
  if (uid_bytes > kUidBytes) return {Verdict::kNotAHello, {}};
  Hello hello;
  hello.encryption = version == kTlsVersion ? Encryption::kTls : Encryption::kNone;
  reader.GetBytes(hello.job.data(), hello.job.size());
  hello.round = reader.Get<uint64_t>();
  hello.rank = reader.Get<uint32_t>();
  hello.world = reader.Get<uint32_t>();
  hello.to_rank = reader.Get<uint32_t>();
  reader.Get<uint32_t>();
  char uid[kUidBytes];
  reader.GetBytes(uid, sizeof(uid));
  hello.pod_uid.assign(uid, uid_bytes);
  reader.GetBytes(hello.challenge.data(), hello.challenge.size());
  return {Verdict::kAccepted, hello};
}

AnswerBytes EncodeAnswer(const Answer& answer) {
  AnswerBytes bytes{};
  WireWriter writer(bytes);
  writer.PutBytes(kAnswerMagic.data(), kAnswerMagic.size());
  writer.Put(static_cast<uint32_t>(answer.verdict));
  writer.PutBytes(answer.challenge.data(), answer.challenge.size());
  writer.PutBytes(answer.proof.data(), answer.proof.size());
  return bytes;
}

std::optional<Answer> DecodeAnswer(const AnswerBytes& bytes) {
  WireReader reader(bytes);
  char magic[4];
  reader.GetBytes(magic, sizeof(magic));
  const uint32_t verdict = reader.Get<uint32_t>();
  if (std::string_view(magic, sizeof(magic)) != kAnswerMagic || verdict >= kVerdicts)
    return std::nullopt;
  Answer answer;
  answer.verdict = static_cast<Verdict>(verdict);
  reader.GetBytes(answer.challenge.data(), answer.challenge.size());
  reader.GetBytes(answer.proof.data(), answer.proof.size());
  return answer;
}

Verdict JudgeHello(const Membership& self, const Hello& hello, Encryption encryption) {
  if (hello.job != Sha256Of(self.job)) return Verdict::kWrongJob;
  const bool fits = hello.world == static_cast<uint32_t>(self.world()) &&
                    hello.to_rank == static_cast<uint32_t>(self.rank) && hello.rank < hello.world &&
                    hello.rank != hello.to_rank &&
                    hello.pod_uid == self.members[hello.rank].pod_uid;
  if (!fits) return Verdict::kNotAMember;
  if (hello.encryption == encryption) return Verdict::kAccepted;
  return encryption == Encryption::kNone ? Verdict::kWantsTls : Verdict::kWantsNoTls;
}

Sha256Digest AcceptorProof(const Membership& self, int to_rank, const HelloBytes& hello,
                           const Challenge& acceptors_challenge) {
  return Proof("ringmaster acceptor", self, to_rank, hello, acceptors_challenge);
}

Sha256Digest DialerProof(const Membership& self, int to_rank, const HelloBytes& hello,
                         const Challenge& acceptors_challenge) {
  return Proof("ringmaster dialer", self, to_rank, hello, acceptors_challenge);
}

Sha256Digest ConnectionKey(const Membership& self, int to_rank, const HelloBytes& hello,
                           const Challenge& acceptors_challenge) {
  return Proof("ringmaster tls", self, to_rank, hello, acceptors_challenge);
}

}  // namespace ringmaster::collectives
