// How two ranks make sure of one another before the first frame. Pure functions over fixed records;
// the bytes are moved by the transport.
//
//   dialer -> acceptor   Hello: who I am, whom I want, in which round of which job, my challenge
//   acceptor -> dialer   Answer: a verdict, my challenge, and my proof
//   dialer -> acceptor   Proof
//   acceptor -> dialer   Verdict
//
// Where both want TLS its handshake follows, on the same connection (tcp/tls_stream.h).
//
// A proof is HMAC-SHA-256 with the round's key over a label for the direction, the whole Hello, the
// acceptor's challenge, and the acceptor's rank and pod UID. So each side proves that it knows the
// key of this very round, neither can be shown its own proof, and no old one can be used again.
// What the Hello says of encryption is part of that: nobody on the way can talk two ranks out of
// it. The connection for their frames is dialed by the lower of two ranks, so it is made once;
// either may dial another when it fails and cannot say so on that one. A verdict other than
// kAccepted ends the connection.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_HANDSHAKE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_HANDSHAKE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/sha256.h"
#include "runtime/collectives/membership.h"
#include "runtime/collectives/transport/choice.h"

namespace ringmaster::collectives {

enum class Verdict : uint32_t {
  kAccepted = 0,
  kNotYet = 1,        // the acceptor has not opened this round: try again
  kRoundOver = 2,     // the acceptor is in a later round, or has left this one
  kWrongJob = 3,      // the addresses belong to another job
  kNotAMember = 4,    // rank, world size or pod UID do not match the acceptor's list
  kWrongKey = 5,      // the proof does not fit
  kWrongVersion = 6,  // another version of this protocol
  kNotAHello = 7,     // garbage; never sent
  kWantsTls = 8,      // the dialer does, and the acceptor does not
  kWantsNoTls = 9,    // the other way round
};
inline constexpr uint32_t kVerdicts = 10;

// For messages: "is of a round that is over".
const char* VerdictText(Verdict verdict);

inline constexpr size_t kHelloBytes = 168;
inline constexpr size_t kAnswerBytes = 72;
inline constexpr size_t kProofBytes = 32;
inline constexpr size_t kVerdictBytes = 4;
using HelloBytes = std::array<std::byte, kHelloBytes>;
using AnswerBytes = std::array<std::byte, kAnswerBytes>;
using Challenge = std::array<uint8_t, 32>;

struct Hello {
  Sha256Digest job{};
  uint64_t round = 0;
  uint32_t rank = 0;
  uint32_t world = 0;
  uint32_t to_rank = 0;
  Encryption encryption = Encryption::kNone;
  std::string pod_uid;
  Challenge challenge{};
};

struct Answer {
  Verdict verdict = Verdict::kAccepted;
  Challenge challenge{};
  Sha256Digest proof{};
};

Challenge NewChallenge();

// What this worker says when it dials `to_rank`.
Hello MakeHello(const Membership& self, int to_rank, Encryption encryption = Encryption::kNone);

HelloBytes EncodeHello(const Hello& hello);
// kNotAHello or kWrongVersion in place of a Hello where the bytes are none.
struct DecodedHello {
  Verdict verdict = Verdict::kAccepted;
  Hello hello;
};
DecodedHello DecodeHello(const HelloBytes& bytes);

AnswerBytes EncodeAnswer(const Answer& answer);
// Nothing where the bytes are no answer.
std::optional<Answer> DecodeAnswer(const AnswerBytes& bytes);

// Whether the acceptor `self`, which has the round open, takes this peer, before any proof.
Verdict JudgeHello(const Membership& self, const Hello& hello,
                   Encryption encryption = Encryption::kNone);

// The two proofs. `to_rank` is the acceptor's.
Sha256Digest AcceptorProof(const Membership& self, int to_rank, const HelloBytes& hello,
                           const Challenge& acceptors_challenge);
Sha256Digest DialerProof(const Membership& self, int to_rank, const HelloBytes& hello,
                         const Challenge& acceptors_challenge);

// The key of this connection's TLS: made as the proofs, under a label of its own, and never sent.
Sha256Digest ConnectionKey(const Membership& self, int to_rank, const HelloBytes& hello,
                           const Challenge& acceptors_challenge);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_HANDSHAKE_H_
