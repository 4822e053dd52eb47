#include "runtime/collectives/transport/tcp/tcp_transport.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <sched.h>

#include <fmt/format.h>

#include "common/check.h"

namespace ringmaster::collectives::tcp {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kLongestPollMs = 1000;

// How long who leaves waits for peers to take what was sent to them; they do at once, unless they
// are stopped or far behind with reading.
constexpr std::chrono::seconds kDelivery{1};
constexpr int kDeliveryLookMs = 1;

// How long who waits looks at memory and sockets before it sleeps. Where every rank has a
// processor: longer than a sleeper takes to wake, or two that have slept once would put one another
// to sleep again and again. Only after the first part of it does it let others run in between:
// whoever else is there then gets a whole slice of time, longer than most messages take.
constexpr std::chrono::microseconds kSpin{300};
constexpr std::chrono::microseconds kKeep{100};
constexpr int kLooksPerClock = 64;  // some microseconds
// Over sockets only operations of so few bytes are waited for like that. In longer ones a wake-up
// is a small part of the time, and the processor is better left to those who compute beside them.
constexpr uint64_t kShortBytes = uint64_t{1} << 20;
// Where they have not, whoever waits lets the others run at once, so many times.
constexpr int kYields = 100;

// Who always finds something to move looks at the sockets now and then: an abort may have come, and
// peers want to hear that it lives. After so many moves, or where these take long.
constexpr unsigned kMovesPerPoll = 256;
constexpr unsigned kMovesPerClock = 16;
constexpr milliseconds kLongestBlindness{20};

// The steady clock as it was at the last tick of the system, some milliseconds ago at most: it
// costs a quarter of it.
SteadyTime CoarseNow() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return SteadyTime(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

void PauseProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpTransport>> TcpTransport::Create(Membership membership,
                                                                   Timeouts timeouts,
                                                                   SharedMemoryOptions shared,
                                                                   Listener& listener,
                                                                   Encryption encryption) {
  RM_RETURN_IF_ERROR(Validate(membership));
  if (shared.choice != TransportChoice::kTcp) shm::SweepAbandoned();
  std::unique_ptr<TcpTransport> transport(
      new TcpTransport(std::move(membership), timeouts, shared, listener, encryption));
  RM_RETURN_IF_ERROR(transport->acceptor_.OpenRound(transport.get()));
  return transport;
}

TcpTransport::TcpTransport(Membership membership, Timeouts timeouts, SharedMemoryOptions shared,
                           Listener& listener, Encryption encryption)
    : membership_(std::move(membership)),
      timeouts_(timeouts),
      shared_options_(shared),
      encryption_(encryption),
      processors_(shm::OwnProcessors()),
      acceptor_(listener.acceptor()),
      arrived_(membership_.members.size(), false),
      next_alive_(steady_clock::now() + AlivePeriod()) {
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
    AwaitDelivery();
  }
  for (const auto& peer : peers_) {
    if (peer != nullptr) peer->link.Close();
  }
}

// A connection that is closed while its peer still writes (that it lives, say) is reset, and with
// it goes what the peer's kernel has not taken yet, the last messages of a sender that ran ahead.
void TcpTransport::AwaitDelivery() {
  const SteadyTime deadline = steady_clock::now() + kDelivery;
  for (SteadyTime now = steady_clock::now(); now < deadline; now = steady_clock::now()) {
    const bool all = std::all_of(peers_.begin(), peers_.end(), [now](const auto& peer) {
      return peer == nullptr || peer->link.Delivered(now);
    });
    if (all) return;
    poll(nullptr, 0, kDeliveryLookMs);
  }
}

FrameHeader TcpTransport::Header(FrameType type) const {
  return {.type = type, .round = membership_.round, .sequence = 0, .tag = 0};
}

FrameHeader TcpTransport::OperationHeader(FrameType type, int rank) {
  Peer& p = peer(rank);
  FrameHeader header = Header(type);
  header.sequence = p.begun;
  header.tag = p.tag_of(p.begun);
  return header;
}

absl::Status TcpTransport::Begin(const Operation& operation, const Scope& scope) {
  if (failed_.load(std::memory_order_acquire)) return failure().status;
  const uint64_t hash = Digest(&scope.group, sizeof(scope.group), operation.Hash());
  operation_ = operation;
  operation_name_ = operation.name.substr(0, kMaxDescriptionBytes);
  operation_.name = operation_name_;
  operation_.by_peer = {};
  group_name_ = scope.name;
  has_begun_ = false;
  waits_long_ = false;
  short_ = operation.count * SizeOf(operation.type) <= kShortBytes;
  for (const auto& p : peers_) {
    if (p == nullptr) continue;
    p->link.StartOperation();
    p->takes_part = scope.ranks.empty();
    p->told_operation = false;
    p->told_waiting = false;
  }
  for (const int rank : scope.ranks) {
    if (rank != membership_.rank) peer(rank).takes_part = true;
  }
  for (int rank = 0; rank < world(); ++rank) {
    if (rank == membership_.rank || !peer(rank).takes_part) continue;
    Peer& p = peer(rank);
    ++p.begun;
    p.tag_of(p.begun) =
        operation.by_peer.empty() ? hash : Digest(&operation.by_peer[rank], sizeof(uint64_t), hash);
    if (const absl::Status agreed = CheckAgreement(rank, p.sequence, p.tag); !agreed.ok())
      return Blame(rank, agreed);
  }
  return absl::OkStatus();
}

// Before it is settled where data goes, there is none to be told about.
void TcpTransport::TellOperation(int rank) {
  Peer& p = peer(rank);
  if (p.told_operation || p.link.path() == Path::kUnsettled) return;
  p.told_operation = true;
  if (p.link.path() == Path::kSharedMemory) {
    p.link.channel().Describe(p.begun, p.tag_of(p.begun), operation_, group_name_);
  } else {
    p.link.QueueControl(OperationHeader(FrameType::kOperation, rank), DescribeOperation());
  }
}

// Shared memory holds what is looked at when data comes; a peer that sleeps must hear it.
void TcpTransport::TellWaiting(int rank) {
  Peer& p = peer(rank);
  TellOperation(rank);
  if (p.told_waiting || p.link.path() != Path::kSharedMemory) return;
  p.told_waiting = true;
  p.link.QueueControl(OperationHeader(FrameType::kOperation, rank), DescribeOperation());
}

void TcpTransport::Connect(int rank) {
  Peer& p = peer(rank);
  if (p.link.attached() || p.dialer != nullptr || rank < membership_.rank) return;
  const SteadyTime deadline = steady_clock::now() + timeouts_.connect;
  p.dialer =
      std::make_unique<Dialer>(membership_, rank, acceptor_.address(), deadline, encryption_);
}

bool TcpTransport::PostSend(int rank, std::span<const std::byte> bytes) {
  RM_CHECK(rank >= 0 && rank < world() && rank != membership_.rank && peer(rank).takes_part,
           "a send to nobody");
  Connect(rank);
  TellOperation(rank);
  FrameHeader header = OperationHeader(FrameType::kData, rank);
  header.length = bytes.size();
  return peer(rank).link.QueueData(header, bytes);
}

Receipt TcpTransport::PostReceive(int rank, std::span<std::byte> bytes) {
  RM_CHECK(rank >= 0 && rank < world() && rank != membership_.rank && peer(rank).takes_part,
           "a receive from nobody");
  Connect(rank);
  if (waits_long_) TellWaiting(rank);
  return {rank, peer(rank).link.PostReceive(bytes)};
}

Receipt TcpTransport::PostCombine(int rank, const Combining& combining) {
  RM_CHECK(rank >= 0 && rank < world() && rank != membership_.rank && peer(rank).takes_part,
           "a receive from nobody");
  RM_CHECK(combining.mine.size() == combining.into.size(), "combined into another length");
  Connect(rank);
  if (waits_long_) TellWaiting(rank);
  return {rank, peer(rank).link.PostReceive(combining)};
}

absl::Status TcpTransport::Wait(Receipt receipt) {
  const Link& link = peer(receipt.peer).link;
  awaited_ = receipt;
  ++waits_;
  return Until([&] { return link.completed_receives() >= receipt.number; });
}

absl::Status TcpTransport::Finish() {
  awaited_.peer = -1;
  ++waits_;
  RM_RETURN_IF_ERROR(Until([&] { return !busy(); }));
  RingBells();
  // Many short operations in shared memory never look at a socket, where others want to hear that
  // this rank lives.
  if (!sharing_.empty() && CoarseNow() >= next_alive_) return Poll(/*may_sleep=*/false);
  return absl::OkStatus();
}

template <typename Done>
absl::Status TcpTransport::Until(const Done& done) {
  int looks = 0;
  SteadyTime until{};
  // Also where nobody sleeps: who looks for a message while its own is still on its way to memory
  // takes the line from the one that writes it, and the fence waits until that has gone.
  if (!done()) RingBells();
  while (!done()) {
    RM_ASSIGN_OR_RETURN(bool moved, MoveShared());
    if (failed_.load(std::memory_order_relaxed)) return Fail(failure());
    if (!moved && !connected_.empty()) {
      RM_ASSIGN_OR_RETURN(moved, MoveSockets());
    }
    if (moved) {
      looks = 0;
      if (!done()) RingBells();
      if (MustLookUp()) RM_RETURN_IF_ERROR(Poll(/*may_sleep=*/false));
      continue;
    }
    if (done()) break;  // which may be without a byte
    if (!MayLookAgain(looks++, &until)) {
      RM_RETURN_IF_ERROR(Step());
      RingBells();
      looks = 0;
    }
  }
  return absl::OkStatus();
}

// A look at the clock takes a quarter of the time of a small message through memory, which is there
// after a few looks.
int TcpTransport::FreeLooks() const {
  return may_spin_ && connected_.empty() ? kLooksPerClock : 0;
}

// Where there are more ranks than processors, the one that is waited for may need this one's.
bool TcpTransport::MayLookAgain(int looks, SteadyTime* until) {
  if (!short_ && AwaitsSockets()) return false;
  if (!may_spin_) {
    if (looks == kYields) return false;
    sched_yield();
    return true;
  }
  if (looks >= FreeLooks() && looks % kLooksPerClock == 0) {
    const SteadyTime now = steady_clock::now();
    if (looks == FreeLooks()) *until = now + kSpin;
    if (now >= *until) return false;
    if (now >= *until - (kSpin - kKeep)) sched_yield();
  }
  PauseProcessor();
  return true;
}

bool TcpTransport::AwaitsSockets() {
  return std::ranges::any_of(connected_, [&](int rank) { return peer(rank).link.has_work(); });
}

bool TcpTransport::MustLookUp() {
  ++moves_;
  return moves_ % kMovesPerPoll == 0 || (moves_ % kMovesPerClock == 0 && CoarseNow() >= look_up_);
}

absl::StatusOr<bool> TcpTransport::MoveShared() {
  bool moved = false;
  for (const int rank : sharing_) {
    Link& link = peer(rank).link;
    if (!link.has_posted() && !link.has_held()) continue;
    const absl::StatusOr<bool> some = link.MoveShared();
    if (!some.ok()) return Blame(rank, some.status());
    moved = moved || *some;
  }
  return moved;
}

// Whether a peer is reachable is the matter of Poll, and so is all that is no data.
absl::StatusOr<bool> TcpTransport::MoveSockets() {
  bool moved = false;
  const SteadyTime now = CoarseNow();
  for (const int rank : connected_) {
    Link& link = peer(rank).link;
    if (!link.attached() || link.left() || !link.has_work()) continue;
    const uint64_t before = link.bytes_moved();
    // Reading first: a peer that has said why it leaves is not there to be written to any more, and
    // its kernel's answer to that would take the words with it.
    absl::Status status = link.held_back() ? absl::OkStatus() : link.Read(now);
    if (status.ok() && link.has_queued()) status = link.Write(now);
    if (!status.ok()) return Blame(rank, status);
    moved = moved || link.bytes_moved() != before;
  }
  return moved;
}

void TcpTransport::RingBells() {
  for (const int rank : sharing_) {
    Link& link = peer(rank).link;
    if (!link.channel().MustWake() || link.left()) continue;
    link.QueueControl(Header(FrameType::kBell), "");
    // Where it cannot be heard, the next look at the connection says why.
    link.Write(steady_clock::now()).IgnoreError();
  }
}

absl::StatusOr<bool> TcpTransport::Doze() {
  for (const int rank : sharing_) peer(rank).link.channel().Doze();
  RM_ASSIGN_OR_RETURN(const bool moved, MoveShared());
  for (const int rank : sharing_) {
    const absl::Status seen = peer(rank).link.InspectShared();
    if (!seen.ok()) return Blame(rank, seen);
  }
  return moved;
}

bool TcpTransport::busy() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const auto& p) { return p != nullptr && p->link.has_work(); });
}

absl::Status TcpTransport::Step() {
  if (const Failure failed = failure(); !failed.status.ok()) return Fail(failed);
  const absl::StatusOr<bool> moved = Doze();
  absl::Status status = moved.status();
  if (status.ok() && !*moved) status = Poll(/*may_sleep=*/true);
  for (const int rank : sharing_) peer(rank).link.channel().Rise();
  return status;
}

absl::Status TcpTransport::Poll(bool may_sleep) {
  const SteadyTime before = steady_clock::now();
  look_up_ = before + kLongestBlindness;
  if (!has_begun_) {
    has_begun_ = true;
    begun_ = before;
  }
  PlanQuestion(before);
  for (const int rank : sharing_) peer(rank).link.NoteShared(before);
  AdoptArrivals(before);
  if (waits_long_) WithdrawOffers();
  const int longest_ms = PreparePoll(before);
  const int timeout_ms = may_sleep ? longest_ms : 0;
  if (poll(polled_.data(), polled_.size(), timeout_ms) < 0) {
    RM_CHECK(errno == EINTR, "poll failed");
    return absl::OkStatus();
  }
  if (polled_.back().revents != 0) wake_.Drain();
  const SteadyTime now = steady_clock::now();
  AnnounceWaiting(now);
  SayAlive(now);
  AskAround(now);
  RM_RETURN_IF_ERROR(Dispatch(now));
  return CheckPatience(now);
}

int TcpTransport::PreparePoll(SteadyTime now) {
  SteadyTime next = waits_long_ ? next_alive_ : std::min(next_alive_, begun_ + kLongWait);
  next = std::min(next, next_question_);
  reads_ahead_from_ = LastMove() + kLongWait;
  const bool reads_ahead = now >= reads_ahead_from_;
  polled_.clear();
  for (const auto& p : peers_) {
    pollfd entry{-1, 0, 0};
    if (p != nullptr && p->dialer != nullptr) {
      entry = p->dialer->Interest();
      next = std::min(next, p->dialer->wake_at());
    } else if (p != nullptr) {
      entry.events = p->link.interest(reads_ahead);
      if (entry.events != 0) entry.fd = p->link.fd();
      // These need no event: they go on, or fail, at once.
      if (p->link.unblocked() || (p->link.left() && p->link.has_work())) next = now;
      if (p->link.held_back() && !reads_ahead) next = std::min(next, reads_ahead_from_);
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
  const bool ended = (events & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
  const bool readable = (events & POLLIN) != 0 || ended;
  if (readable || p.link.unblocked()) RM_RETURN_IF_ERROR(p.link.Read(now));
  if (p.link.held_back() && now >= reads_ahead_from_)
    RM_RETURN_IF_ERROR(p.link.ReadAhead(now, ended));
  if ((events & POLLOUT) != 0) RM_RETURN_IF_ERROR(p.link.Write(now));
  return absl::OkStatus();
}

absl::Status TcpTransport::Dial(int rank, SteadyTime now) {
  Peer& p = peer(rank);
  RM_ASSIGN_OR_RETURN(std::optional<Connection> connection, p.dialer->Step(now));
  if (!connection) return absl::OkStatus();
  p.dialer.reset();
  RM_RETURN_IF_ERROR(TuneConnection(connection->fd.get(), timeouts_.operation));
  p.link.Attach(std::move(connection->fd), now, std::move(connection->tls));
  Offer(rank);
  return p.link.Write(now);
}

bool TcpTransport::Deliver(int rank, Connection connection) {
  const std::lock_guard lock(mutex_);
  if (arrived_[rank]) return false;
  arrived_[rank] = true;
  // Nobody looks at connections any more. Who dials as late as this is to hear why, or it would
  // wait for this rank and blame it.
  if (!failure_.status.ok()) {
    const std::vector<std::byte> last = AbortFrame(membership_.round, failure_);
    const iovec part{const_cast<std::byte*>(last.data()), last.size()};
    if (connection.tls == nullptr) {
      SendRecord(connection.fd.get(), last);
    } else {
      connection.tls->Write(std::span(&part, 1));
    }
    return true;
  }
  arrivals_.emplace_back(rank, std::move(connection));
  wake_.Signal();
  return true;
}

void TcpTransport::AdoptArrivals(SteadyTime now) {
  std::vector<std::pair<int, Connection>> arrivals;
  {
    const std::lock_guard lock(mutex_);
    arrivals.swap(arrivals_);
  }
  for (auto& [rank, connection] : arrivals) {
    // A connection that cannot be tuned is broken, which the first read tells with a better reason.
    TuneConnection(connection.fd.get(), timeouts_.operation).IgnoreError();
    peer(rank).link.Attach(std::move(connection.fd), now, std::move(connection.tls));
  }
}

Traffic TcpTransport::traffic() const {
  Traffic sum;
  for (const auto& p : peers_) {
    if (p == nullptr) continue;
    sum.bytes_sent += p->link.bytes_sent();
    sum.bytes_received += p->link.bytes_received();
    sum.sharing_peers += p->link.path() == Path::kSharedMemory ? 1 : 0;
  }
  return sum;
}

}  // namespace ringmaster::collectives::tcp
