// Connects to one peer and runs the dialer's side of the handshake, as a state machine that a poll
// loop drives. It tries again, with growing pauses, while the peer is not there or has not opened
// the round yet. One thread.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_DIALER_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_DIALER_H_

#include <chrono>
#include <memory>
#include <optional>
#include <poll.h>
#include <span>
#include <string>

#include "common/clock.h"
#include "common/file.h"
#include "runtime/collectives/transport/handshake.h"
#include "runtime/collectives/transport/tcp/socket.h"
#include "runtime/collectives/transport/tcp/tls_stream.h"

namespace ringmaster::collectives::tcp {

// A rank that looks at its wires so much later than it meant to was held up: what came meanwhile
// waits unread, and the time is nobody else's fault.
inline constexpr std::chrono::milliseconds kHeldUp{200};

class Dialer {
 public:
  // `self` must outlive the dialer. Dials from `source` until `deadline`, and about as much longer
  // as it was not stepped, which is not the peer's fault.
  Dialer(const Membership& self, int peer, const SocketAddress& source, SteadyTime deadline,
         Encryption encryption = Encryption::kNone);

  // Goes on as far as it can without blocking. The connection once the handshake is done, and that
  // of TLS where it is wanted; nothing while they are under way; kDeadlineExceeded: the deadline
  // passed; kFailedPrecondition: the peer refused, or could not prove itself; kDataLoss: TLS
  // failed.
  absl::StatusOr<std::optional<Connection>> Step(SteadyTime now);

  // For who gives up: says `last`, whole frames, where the peer may have taken the connection. With
  // TLS it takes none before it can be told so.
  void Leave(std::span<const std::byte> last);

  // What to poll for: a descriptor of -1 while it pauses, and when it has given the connection.
  pollfd Interest() const;

  // When to call Step at the latest; often, or it takes its caller for one that is held up.
  SteadyTime wake_at() const;

 private:
  enum class State { kPausing, kConnecting, kAwaitingAnswer, kAwaitingVerdict, kEncrypting };
  using Outcome = absl::StatusOr<std::optional<Connection>>;

  void DiscountAbsence(SteadyTime now);
  Outcome Advance(SteadyTime now);
  void StartAttempt(SteadyTime now);
  void Pause(SteadyTime now, const std::string& why);
  void SayHello(SteadyTime now);
  Outcome ReadAnswer(SteadyTime now);
  Outcome ReadVerdict(SteadyTime now);
  Outcome Encrypt(SteadyTime now);
  bool Receive(std::span<std::byte> record, SteadyTime now);
  absl::Status Refused(Verdict verdict) const;

  const Membership& self_;
  const int peer_;
  const SocketAddress source_;
  SteadyTime started_;   // each moved on by
  SteadyTime deadline_;  // the times in which it was not stepped
  SteadyTime last_step_;
  const Encryption encryption_;

  State state_ = State::kPausing;
  SteadyTime next_attempt_{};
  std::chrono::milliseconds pause_;
  std::string last_trouble_ = "no attempt finished";
  UniqueFd fd_;
  size_t done_ = 0;
  HelloBytes hello_bytes_{};
  AnswerBytes answer_bytes_{};
  uint32_t verdict_ = 0;
  Sha256Digest key_{};              // of TLS
  std::unique_ptr<TlsStream> tls_;  // while encrypting
};

}  // namespace ringmaster::collectives::tcp

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_DIALER_H_
