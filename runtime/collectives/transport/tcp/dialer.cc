#include "runtime/collectives/transport/tcp/dialer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

namespace ringmaster::collectives::tcp {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{2};
constexpr milliseconds kLongestPause{100};
// One attempt may hang in a network that drops packets; the next may get through.
constexpr milliseconds kAttemptTimeout{3000};
// How often it wants to be stepped. Each late step takes as much of the time that there is, so that
// one that is always late has an end.
constexpr milliseconds kLook{100};

}  // namespace

Dialer::Dialer(const Membership& self, int peer, const SocketAddress& source, SteadyTime deadline,
               Encryption encryption)
    : self_(self),
      peer_(peer),
      source_(source),
      started_(std::chrono::steady_clock::now()),
      deadline_(deadline),
      last_step_(started_),
      encryption_(encryption),
      pause_(kFirstPause) {}

// What has come is looked at before the time is up.
absl::StatusOr<std::optional<Connection>> Dialer::Step(SteadyTime now) {
  DiscountAbsence(now);
  if (state_ == State::kPausing && now >= next_attempt_) StartAttempt(now);
  RM_ASSIGN_OR_RETURN(std::optional<Connection> connection, Advance(now));
  if (connection) return connection;
  if (now >= deadline_) {
    const double seconds = std::chrono::duration<double>(now - started_).count();
    return absl::DeadlineExceededError(
        fmt::format("could not be reached for {:.1f} s: {}", seconds, last_trouble_));
  }
  if (state_ != State::kPausing && now >= next_attempt_) Pause(now, "it does not answer");
  return std::nullopt;
}

void Dialer::DiscountAbsence(SteadyTime now) {
  const auto gap = now - std::exchange(last_step_, now);
  if (gap < kHeldUp) return;
  started_ += gap - kLook;
  if (deadline_ != SteadyTime::max()) deadline_ += gap - kLook;
}

Dialer::Outcome Dialer::Advance(SteadyTime now) {
  if (state_ == State::kConnecting) SayHello(now);
  if (state_ == State::kAwaitingAnswer) return ReadAnswer(now);
  if (state_ == State::kAwaitingVerdict) return ReadVerdict(now);
  if (state_ == State::kEncrypting) return Encrypt(now);
  return std::nullopt;
}

void Dialer::Leave(std::span<const std::byte> last) {
  const bool plain = encryption_ == Encryption::kNone;
  if (plain && state_ == State::kAwaitingVerdict) SendRecord(fd_.get(), last);
}

pollfd Dialer::Interest() const {
  if (!fd_.valid()) return {-1, 0, 0};  // it pauses, or is done
  if (state_ == State::kEncrypting) return {fd_.get(), tls_->interest(), 0};
  return {fd_.get(), static_cast<short>(state_ == State::kConnecting ? POLLOUT : POLLIN), 0};
}

SteadyTime Dialer::wake_at() const {
  return std::min({next_attempt_, deadline_, last_step_ + kLook});
}

void Dialer::StartAttempt(SteadyTime now) {
  const absl::StatusOr<SocketAddress> target = ParseAddress(self_.members[peer_].address);
  if (!target.ok()) return Pause(now, Message(target.status()));
  absl::StatusOr<UniqueFd> fd = StartConnecting(*target, source_);
  if (!fd.ok()) return Pause(now, Message(fd.status()));
  fd_ = std::move(*fd);
  state_ = State::kConnecting;
  next_attempt_ = now + kAttemptTimeout;
}

void Dialer::Pause(SteadyTime now, const std::string& why) {
  tls_.reset();
  fd_.Reset();
  last_trouble_ = why;
  state_ = State::kPausing;
  next_attempt_ = now + pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void Dialer::SayHello(SteadyTime now) {
  pollfd writable{fd_.get(), POLLOUT, 0};
  if (poll(&writable, 1, 0) <= 0) return;
  if (const absl::Status connected = ConnectResult(fd_.get()); !connected.ok()) {
    return Pause(now, Message(connected));
  }
  hello_bytes_ = EncodeHello(MakeHello(self_, peer_, encryption_));
  if (!SendRecord(fd_.get(), hello_bytes_)) return Pause(now, "it closed the connection");
  state_ = State::kAwaitingAnswer;
  next_attempt_ = now + kAttemptTimeout;
  done_ = 0;
}

bool Dialer::Receive(std::span<std::byte> record, SteadyTime now) {
  switch (ReceiveInto(fd_.get(), record, &done_)) {
    case IoState::kComplete:
      return true;
    case IoState::kWouldBlock:
      return false;
    default:
      Pause(now, "it closed the connection in the handshake");
      return false;
  }
}

Dialer::Outcome Dialer::ReadAnswer(SteadyTime now) {
  if (!Receive(answer_bytes_, now)) return std::nullopt;
  const std::optional<Answer> answer = DecodeAnswer(answer_bytes_);
  if (!answer) return absl::FailedPreconditionError("whoever listens there is no worker");
  if (answer->verdict == Verdict::kNotYet) {
    Pause(now, "it has not opened the round");
    return std::nullopt;
  }
  if (answer->verdict != Verdict::kAccepted) return Refused(answer->verdict);
  const Sha256Digest wanted = AcceptorProof(self_, peer_, hello_bytes_, answer->challenge);
  if (!ConstantTimeEqual(wanted, answer->proof)) {
    return absl::FailedPreconditionError("it does not know the round's key");
  }
  const Sha256Digest proof = DialerProof(self_, peer_, hello_bytes_, answer->challenge);
  if (!SendRecord(fd_.get(), std::as_bytes(std::span(proof)))) {
    Pause(now, "it closed the connection in the handshake");
    return std::nullopt;
  }
  key_ = ConnectionKey(self_, peer_, hello_bytes_, answer->challenge);
  state_ = State::kAwaitingVerdict;
  // No other attempt from here on: the peer may have taken this connection, and takes one only.
  next_attempt_ = SteadyTime::max();
  done_ = 0;
  return ReadVerdict(now);
}

Dialer::Outcome Dialer::ReadVerdict(SteadyTime now) {
  if (!Receive(std::as_writable_bytes(std::span(&verdict_, 1)), now)) return std::nullopt;
  if (verdict_ != static_cast<uint32_t>(Verdict::kAccepted)) {
    return Refused(verdict_ < kVerdicts ? static_cast<Verdict>(verdict_) : Verdict::kNotAHello);
  }
  if (encryption_ == Encryption::kNone) return Connection{std::move(fd_), nullptr};
  tls_ = std::make_unique<TlsStream>(TlsStream::Side::kDialer, fd_.get(), key_);
  state_ = State::kEncrypting;
  return Encrypt(now);
}

Dialer::Outcome Dialer::Encrypt(SteadyTime now) {
  const IoState state = tls_->Handshake();
  if (state == IoState::kComplete) return Connection{std::move(fd_), std::move(tls_)};
  if (state == IoState::kWouldBlock) return std::nullopt;
  if (!tls_->error().empty())
    return absl::DataLossError(fmt::format("failed in TLS: {}", tls_->error()));
  Pause(now, "it closed the connection in the handshake of TLS");
  return std::nullopt;
}

absl::Status Dialer::Refused(Verdict verdict) const {
  return absl::FailedPreconditionError(fmt::format("it refused this worker, which {} (round {})",
                                                   VerdictText(verdict), self_.round));
}

}  // namespace ringmaster::collectives::tcp
