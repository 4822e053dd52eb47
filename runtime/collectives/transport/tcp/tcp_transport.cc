#include "runtime/collectives/transport/tcp/tcp_transport.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "common/check.h"

namespace ringmaster::collectives::tcp {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kLongestPollMs = 1000;

}  // namespace

absl::StatusOr<std::unique_ptr<TcpTransport>> TcpTransport::Create(Membership membership,
                                                                   Timeouts timeouts,
                                                                   Listener& listener) {
  RM_RETURN_IF_ERROR(Validate(membership));
  std::unique_ptr<TcpTransport> transport(
      new TcpTransport(std::move(membership), timeouts, listener));
  RM_RETURN_IF_ERROR(transport->acceptor_.OpenRound(transport.get()));
  return transport;
}

TcpTransport::TcpTransport(Membership membership, Timeouts timeouts, Listener& listener)
    : membership_(std::move(membership)),
      timeouts_(timeouts),
      acceptor_(listener.acceptor()),
      arrived_(membership_.members.size(), false) {
  for (int rank = 0; rank < world(); ++rank) {
    peers_.push_back(rank == membership_.rank ? nullptr
                                              : std::unique_ptr<Peer>(new Peer(rank, this)));
  }
}

TcpTransport::~TcpTransport() {
  acceptor_.CloseRound(this);
  AdoptArrivals(steady_clock::now());
  if (!failure().status.ok()) {
    TellPeers();
  } else {
    for (const auto& peer : peers_) {
      if (peer == nullptr || !peer->link.attached()) continue;
      peer->link.QueueControl(Header(FrameType::kGoodbye), "");
      // Best effort: the round is over for this rank whether or not the peer hears of it.
      peer->link.Write(steady_clock::now()).IgnoreError();
    }
  }
  for (const auto& peer : peers_) {
    if (peer != nullptr) peer->link.Close();
  }
}

FrameHeader TcpTransport::Header(FrameType type) const {
  return {.type = type, .round = membership_.round, .sequence = sequence_, .tag = tag_};
}

absl::Status TcpTransport::Begin(const Operation& operation, uint64_t sequence) {
  RM_RETURN_IF_ERROR(failure().status);
  sequence_ = sequence;
  tag_ = operation.Hash();
  operation_ = operation.Describe();
  begun_ = steady_clock::now();
  next_alive_ = begun_ + AlivePeriod();
  for (int rank = 0; rank < world(); ++rank) {
    if (rank == membership_.rank) continue;
    Peer& p = peer(rank);
    p.link.StartOperation();
    p.told_operation = false;
    if (const absl::Status agreed = CheckAgreement(rank, p.sequence, p.tag); !agreed.ok())
      return Blame(rank, agreed);
  }
  return absl::OkStatus();
}

void TcpTransport::Connect(int rank) {
  Peer& p = peer(rank);
  if (p.link.attached() || p.dialer != nullptr || rank < membership_.rank) return;
  const SteadyTime deadline = steady_clock::now() + timeouts_.connect;
  p.dialer = std::make_unique<Dialer>(membership_, rank, acceptor_.address(), deadline);
}

void TcpTransport::PostSend(int rank, std::span<const std::byte> bytes) {
  RM_CHECK(rank >= 0 && rank < world() && rank != membership_.rank, "a send to nobody");
  Connect(rank);
  Peer& p = peer(rank);
  if (!p.told_operation) p.link.QueueControl(Header(FrameType::kOperation), operation_);
  p.told_operation = true;
  FrameHeader header = Header(FrameType::kData);
  header.length = bytes.size();
  p.link.QueueData(header, bytes);
}

Receipt TcpTransport::PostReceive(int rank, std::span<std::byte> bytes) {
  RM_CHECK(rank >= 0 && rank < world() && rank != membership_.rank, "a receive from nobody");
  Connect(rank);
  return {rank, peer(rank).link.PostReceive(bytes)};
}

absl::Status TcpTransport::Wait(Receipt receipt) {
  const Link& link = peer(receipt.peer).link;
  while (link.completed_receives() < receipt.number) RM_RETURN_IF_ERROR(Step());
  return absl::OkStatus();
}

absl::Status TcpTransport::Finish() {
  while (busy()) RM_RETURN_IF_ERROR(Step());
  return absl::OkStatus();
}

bool TcpTransport::busy() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const auto& p) { return p != nullptr && p->link.has_work(); });
}

absl::Status TcpTransport::Step() {
  if (const Failure failed = failure(); !failed.status.ok()) return Fail(failed);
  const SteadyTime before = steady_clock::now();
  AdoptArrivals(before);
  const int timeout_ms = PreparePoll(before);
  if (poll(polled_.data(), polled_.size(), timeout_ms) < 0) {
    RM_CHECK(errno == EINTR, "poll failed");
    return absl::OkStatus();
  }
  if (polled_.back().revents != 0) wake_.Drain();
  const SteadyTime now = steady_clock::now();
  SayAlive(now);
  RM_RETURN_IF_ERROR(Dispatch(now));
  return CheckPatience(now);
}

int TcpTransport::PreparePoll(SteadyTime now) {
  SteadyTime next = next_alive_;
  polled_.clear();
  for (const auto& p : peers_) {
    pollfd entry{-1, 0, 0};
    if (p != nullptr && p->dialer != nullptr) {
      entry = p->dialer->Interest();
      next = std::min(next, p->dialer->wake_at());
    } else if (p != nullptr) {
      entry.events = p->link.interest();
      if (entry.events != 0) entry.fd = p->link.fd();
      // These need no event: they go on, or fail, at once.
      if (p->link.unblocked() || (p->link.left() && p->link.has_work())) next = now;
    }
    polled_.push_back(entry);
  }
  polled_.push_back({wake_.fd(), POLLIN, 0});
  const auto left = std::chrono::ceil<milliseconds>(next - now).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, kLongestPollMs));
}

absl::Status TcpTransport::Dispatch(SteadyTime now) {
  for (int rank = 0; rank < world(); ++rank) {
    if (rank == membership_.rank) continue;
    const absl::Status status = AdvancePeer(rank, polled_[rank].revents, now);
    if (!status.ok()) return Blame(rank, status);
  }
  return absl::OkStatus();
}

absl::Status TcpTransport::AdvancePeer(int rank, short events, SteadyTime now) {
  Peer& p = peer(rank);
  if (p.dialer != nullptr) return Dial(rank, now);
  if (p.link.left() && p.link.has_work()) {
    return absl::UnavailableError("has left the round");
  }
  const bool readable = (events & (POLLIN | POLLHUP | POLLERR)) != 0;
  if (readable || p.link.unblocked()) RM_RETURN_IF_ERROR(p.link.Read(now));
  if ((events & POLLOUT) != 0) RM_RETURN_IF_ERROR(p.link.Write(now));
  return absl::OkStatus();
}

absl::Status TcpTransport::Dial(int rank, SteadyTime now) {
  Peer& p = peer(rank);
  RM_ASSIGN_OR_RETURN(std::optional<UniqueFd> connection, p.dialer->Step(now));
  if (!connection) return absl::OkStatus();
  p.dialer.reset();
  RM_RETURN_IF_ERROR(TuneConnection(connection->get(), timeouts_.operation));
  p.link.Attach(std::move(*connection), now);
  return p.link.Write(now);
}

bool TcpTransport::Deliver(int rank, UniqueFd connection) {
  const std::lock_guard lock(mutex_);
  if (arrived_[rank]) return false;
  arrived_[rank] = true;
  arrivals_.emplace_back(rank, std::move(connection));
  wake_.Signal();
  return true;
}

void TcpTransport::AdoptArrivals(SteadyTime now) {
  std::vector<std::pair<int, UniqueFd>> arrivals;
  {
    const std::lock_guard lock(mutex_);
    arrivals.swap(arrivals_);
  }
  for (auto& [rank, connection] : arrivals) {
    // A connection that cannot be tuned is broken, which the first read tells with a better reason.
    TuneConnection(connection.get(), timeouts_.operation).IgnoreError();
    peer(rank).link.Attach(std::move(connection), now);
  }
}

Traffic TcpTransport::traffic() const {
  Traffic sum;
  for (const auto& p : peers_) {
    if (p == nullptr) continue;
    sum.bytes_sent += p->link.bytes_sent();
    sum.bytes_received += p->link.bytes_received();
  }
  return sum;
}

}  // namespace ringmaster::collectives::tcp
