#include "runtime/collectives/transport/tcp/acceptor.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>

#include "common/check.h"
#include "common/log.h"

namespace ringmaster::collectives::tcp {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A handshake is two round trips, three with TLS; whoever takes longer is stuck or means harm.
constexpr std::chrono::seconds kHandshakeTimeout{5};
constexpr milliseconds kNoDescriptorsPause{100};
// Past this many unfinished handshakes the oldest is let go, so that idle strangers cannot lock
// peers out.
constexpr size_t kMaxGuests = 256;
constexpr size_t kMaxLoggedSources = 1024;

}  // namespace

Acceptor::Acceptor(UniqueFd listening, SocketAddress address)
    : listening_(std::move(listening)), address_(address), thread_([this] { Loop(); }) {}

Acceptor::~Acceptor() {
  {
    const std::lock_guard lock(mutex_);
    RM_CHECK(sink_ == nullptr, "a communicator outlived its listener");
    stopping_ = true;
  }
  wake_.Signal();
  thread_.join();
}

absl::Status Acceptor::OpenRound(RoundSink* sink) {
  const uint64_t round = sink->membership().round;
  const std::lock_guard lock(mutex_);
  if (round <= newest_round_) {
    return absl::FailedPreconditionError(
        fmt::format("round {} cannot be opened: round {} was opened before", round, newest_round_));
  }
  newest_round_ = round;
  sink_ = sink;
  return absl::OkStatus();
}

void Acceptor::CloseRound(RoundSink* sink) {
  const std::lock_guard lock(mutex_);
  if (sink_ == sink) sink_ = nullptr;
}

RefusalCounts Acceptor::refusals() const {
  const std::lock_guard lock(mutex_);
  return refusals_;
}

void Acceptor::Loop() {
  std::vector<pollfd> polled;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    polled.assign({{wake_.fd(), POLLIN, 0}, {listening_.get(), POLLIN, 0}});
    if (accept_again_ > steady_clock::now()) polled[1].fd = -1;
    for (const Guest& guest : guests_) {
      const short interest = guest.tls == nullptr ? POLLIN : guest.tls->interest();
      polled.push_back({guest.fd.get(), interest, 0});
    }
    if (poll(polled.data(), polled.size(), PollTimeoutMs()) < 0) {
      RM_CHECK(errno == EINTR, "poll failed");
      continue;
    }
    if (polled[0].revents != 0) wake_.Drain();
    const SteadyTime now = steady_clock::now();
    size_t index = 2;
    for (auto guest = guests_.begin(); guest != guests_.end(); ++index) {
      bool keep = polled[index].revents == 0 || Advance(*guest);
      if (keep && now >= guest->deadline) {
        Refuse(*guest, "did not finish the handshake in time");
        keep = false;
      }
      guest = keep ? std::next(guest) : guests_.erase(guest);
    }
    if (polled[1].revents != 0) AcceptAll();
  }
}

int Acceptor::PollTimeoutMs() const {
  const SteadyTime now = steady_clock::now();
  SteadyTime next = SteadyTime::max();
  if (!guests_.empty()) next = guests_.front().deadline;  // the oldest comes first
  if (accept_again_ > now) next = std::min(next, accept_again_);
  if (next == SteadyTime::max()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(next - now).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

void Acceptor::AcceptAll() {
  while (true) {
    SocketAddress from;
    from.length = sizeof(from.storage);
    UniqueFd fd(accept4(listening_.get(), reinterpret_cast<sockaddr*>(&from.storage), &from.length,
                        SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      log::Warning("cannot accept connections for a moment",
                   {{"error", ErrnoStatus(errno, "accept")}});
      accept_again_ = steady_clock::now() + kNoDescriptorsPause;
      return;
    }
    if (guests_.size() >= kMaxGuests) {
      Refuse(guests_.front(), "waited in the handshake while too many others did");
      guests_.pop_front();
    }
    Guest& guest = guests_.emplace_back();
    guest.fd = std::move(fd);
    guest.source = FormatHost(from);
    guest.deadline = steady_clock::now() + kHandshakeTimeout;
  }
}

bool Acceptor::Advance(Guest& guest) {
  if (guest.tls != nullptr) return Encrypt(guest);
  const std::span<std::byte> record = guest.proving ? std::as_writable_bytes(std::span(guest.proof))
                                                    : std::span<std::byte>(guest.hello_bytes);
  switch (ReceiveInto(guest.fd.get(), record, &guest.done)) {
    case IoState::kComplete:
      return guest.proving ? CheckProof(guest) : Greet(guest);
    case IoState::kWouldBlock:
      return true;
    default:
      // A connection that says nothing and goes is somebody's health check.
      if (guest.done > 0 || guest.proving) Refuse(guest, "left in the middle of the handshake");
      return false;
  }
}

Verdict Acceptor::Judge(Guest& guest, Answer* answer) {
  const DecodedHello decoded = DecodeHello(guest.hello_bytes);
  if (decoded.verdict != Verdict::kAccepted) return decoded.verdict;
  guest.hello = decoded.hello;
  const std::lock_guard lock(mutex_);
  if (guest.hello.round > newest_round_) return Verdict::kNotYet;
  if (guest.hello.round < newest_round_ || sink_ == nullptr) return Verdict::kRoundOver;
  const Membership& self = sink_->membership();
  const Verdict verdict = JudgeHello(self, guest.hello, sink_->encryption());
  if (verdict != Verdict::kAccepted) return verdict;
  guest.challenge = NewChallenge();
  answer->challenge = guest.challenge;
  answer->proof = AcceptorProof(self, self.rank, guest.hello_bytes, guest.challenge);
  return verdict;
}

bool Acceptor::Greet(Guest& guest) {
  Answer answer;
  answer.verdict = Judge(guest, &answer);
  if (answer.verdict != Verdict::kAccepted && answer.verdict != Verdict::kNotYet) {
    Refuse(guest, VerdictText(answer.verdict));
  }
  // Strangers get no answer: whoever sent garbage does not read it either.
  if (answer.verdict == Verdict::kNotAHello) return false;
  const bool sent = SendRecord(guest.fd.get(), EncodeAnswer(answer));
  guest.proving = true;
  guest.done = 0;
  return sent && answer.verdict == Verdict::kAccepted;
}

bool Acceptor::CheckProof(Guest& guest) {
  Verdict verdict = Verdict::kRoundOver;
  {
    // The lock is held over Deliver, so that a round that closes waits for it.
    const std::lock_guard lock(mutex_);
    if (sink_ != nullptr && guest.hello.round == newest_round_) {
      const Membership& self = sink_->membership();
      const Sha256Digest wanted = DialerProof(self, self.rank, guest.hello_bytes, guest.challenge);
      verdict = ConstantTimeEqual(wanted, guest.proof) ? Verdict::kAccepted : Verdict::kWrongKey;
    }
    const uint32_t number = static_cast<uint32_t>(verdict);
    const bool sent = SendRecord(guest.fd.get(), std::as_bytes(std::span(&number, 1)));
    if (verdict == Verdict::kAccepted && sent) {
      if (sink_->encryption() == Encryption::kTls) {
        const Membership& self = sink_->membership();
        guest.tls = std::make_unique<TlsStream>(
            TlsStream::Side::kAcceptor, guest.fd.get(),
            ConnectionKey(self, self.rank, guest.hello_bytes, guest.challenge));
        return true;
      }
      const int rank = static_cast<int>(guest.hello.rank);
      if (sink_->Deliver(rank, {std::move(guest.fd), nullptr})) return false;
    }
  }
  Refuse(guest, verdict == Verdict::kAccepted ? "is connected already" : VerdictText(verdict));
  return false;
}

bool Acceptor::Encrypt(Guest& guest) {
  const IoState state = guest.tls->Handshake();
  if (state == IoState::kWouldBlock) return true;
  if (state != IoState::kComplete) {
    const std::string& error = guest.tls->error();
    Refuse(guest,
           error.empty() ? "left in the middle of the handshake" : "failed in TLS: " + error);
    return false;
  }
  const char* why = VerdictText(Verdict::kRoundOver);
  {
    const std::lock_guard lock(mutex_);
    if (sink_ != nullptr && guest.hello.round == newest_round_) {
      const int rank = static_cast<int>(guest.hello.rank);
      if (sink_->Deliver(rank, {std::move(guest.fd), std::move(guest.tls)})) return false;
      why = "is connected already";
    }
  }
  Refuse(guest, why);
  return false;
}

void Acceptor::Refuse(const Guest& guest, const std::string& why) {
  if (logged_.size() >= kMaxLoggedSources) logged_.clear();
  const bool first = logged_.emplace(guest.source, why).second;
  if (first) {
    log::Warning("refused a connection", {{"peer", guest.source},
                                          {"at", FormatAddress(address_)},
                                          {"because_it", why},
                                          {"round", guest.hello.round}});
  }
  const std::lock_guard lock(mutex_);
  ++refusals_.refused;
  if (first) ++refusals_.logged;
}

}  // namespace ringmaster::collectives::tcp
