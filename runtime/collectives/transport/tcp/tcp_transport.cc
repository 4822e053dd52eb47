#include "runtime/collectives/transport/tcp/tcp_transport.h"

#include <algorithm>

#include "common/check.h"

namespace ringmaster::collectives::tcp {
namespace {

using std::chrono::steady_clock;

// Over sockets only operations of so few bytes are waited for without sleeping. In longer ones a
// wake-up is a small part of the time, and the processor is better left to those who compute beside
// them.
constexpr uint64_t kShortBytes = uint64_t{1} << 20;

// How long who leaves waits for peers to take what was sent to them; they do at once, unless they
// are stopped or far behind with reading.
constexpr std::chrono::seconds kDelivery{1};
constexpr int kDeliveryLookMs = 1;

}  // namespace

absl::StatusOr<std::unique_ptr<TcpTransport>> TcpTransport::Create(Membership membership,
                                                                   Timeouts timeouts,
                                                                   SharedMemoryOptions shared,
                                                                   Listener& listener,
                                                                   ConnectionOptions connections) {
  RM_RETURN_IF_ERROR(Validate(membership));
  RM_RETURN_IF_ERROR(CheckCongestion(connections.congestion_control));
  if (shared.choice != TransportChoice::kTcp) shm::SweepAbandoned();
  std::unique_ptr<TcpTransport> transport(
      new TcpTransport(std::move(membership), timeouts, shared, listener, std::move(connections)));
  RM_RETURN_IF_ERROR(transport->acceptor_.OpenRound(transport.get()));
  return transport;
}

TcpTransport::TcpTransport(Membership membership, Timeouts timeouts, SharedMemoryOptions shared,
                           Listener& listener, ConnectionOptions connections)
    : membership_(std::move(membership)),
      timeouts_(timeouts),
      shared_options_(shared),
      connections_(std::move(connections)),
      processors_(shm::OwnProcessors()),
      acceptor_(listener.acceptor()),
      next_alive_(steady_clock::now() + AlivePeriod()) {
  for (int rank = 0; rank < world(); ++rank) {
    peers_.push_back(rank == membership_.rank ? nullptr
                                              : std::unique_ptr<Peer>(new Peer(rank, this)));
    // One for the link, from the lower of two ranks, and from each one more for its last words.
    connections_due_.push_back(rank < membership_.rank ? 2 : 1);
  }
}

TcpTransport::~TcpTransport() {
  // Before the round is closed, so that whoever connects meanwhile hears why it failed.
  if (has_failed()) TellOnLeaving();
  acceptor_.CloseRound(this);
  AdoptArrivals(steady_clock::now());
  if (has_failed()) {
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
    if (peer == nullptr) continue;
    peer->link.Close();
    if (peer->last_words != nullptr) peer->last_words->Close();
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
  if (!IsLast(operation, scope)) Remember(operation, scope);
  has_begun_ = false;
  waits_long_ = false;
  if (!scope.ranks.empty()) {
    for (const auto& p : peers_) {
      if (p != nullptr) p->takes_part = false;
    }
    for (const int rank : scope.ranks) {
      if (rank != membership_.rank) peer(rank).takes_part = true;
    }
  }
  for (int rank = 0; rank < world(); ++rank) {
    if (rank == membership_.rank) continue;
    Peer& p = peer(rank);
    p.takes_part = p.takes_part || scope.ranks.empty();
    if (!p.takes_part) continue;
    p.told_operation = false;
    p.told_waiting = false;
    uint64_t& tag = p.tag_of(++p.begun);
    tag = hash_;
    if (operation.by_peer != nullptr) {
      const uint64_t agreed = (*operation.by_peer)(rank);
      tag = Digest(&agreed, sizeof(agreed), hash_);
    }
    p.link.StartOperation(p.begun, tag);
    if (const absl::Status agreed = CheckAgreement(rank, p.sequence, p.tag); !agreed.ok())
      return Blame(rank, agreed);
  }
  return absl::OkStatus();
}

// Many are: a step's, of a few numbers each, have little else to do.
bool TcpTransport::IsLast(const Operation& operation, const Scope& scope) const {
  return operation.kind == operation_.kind && operation.type == operation_.type &&
         operation.count == operation_.count && operation.detail == operation_.detail &&
         operation.name.size() == name_bytes_ && operation.name == operation_name_ &&
         operation.note == operation_note_ && scope.group == group_ && scope.name == group_name_ &&
         hash_ != 0;
}

void TcpTransport::Remember(const Operation& operation, const Scope& scope) {
  hash_ = Digest(&scope.group, sizeof(scope.group), operation.Hash());
  operation_ = operation;
  name_bytes_ = operation.name.size();
  operation_name_ = operation.name.substr(0, kMaxDescriptionBytes);
  operation_.name = operation_name_;
  operation_note_ = operation.note.substr(0, kMaxDescriptionBytes);
  operation_.note = operation_note_;
  operation_.by_peer = nullptr;
  group_ = scope.group;
  group_name_ = scope.name;
  short_ = operation.count * SizeOf(operation.type) <= kShortBytes;
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
  p.dialer = std::make_unique<Dialer>(membership_, rank, acceptor_.address(), deadline,
                                      connections_.encryption);
}

bool TcpTransport::PostSend(int rank, std::span<const std::byte> bytes) {
  RM_CHECK(rank >= 0 && rank < world() && rank != membership_.rank && peer(rank).takes_part,
           "a send to nobody");
  Peer& p = peer(rank);
  if (p.link.path() == Path::kUnsettled) Connect(rank);
  if (!p.told_operation) TellOperation(rank);
  if (p.link.path() == Path::kSharedMemory) return p.link.QueueShared(bytes);
  FrameHeader header = OperationHeader(FrameType::kData, rank);
  header.length = bytes.size();
  p.link.QueueData(header, bytes);
  return false;
}

absl::StatusOr<bool> TcpTransport::TrySends() {
  RM_RETURN_IF_ERROR(MoveShared().status());
  RM_RETURN_IF_ERROR(MoveSockets().status());
  return std::ranges::none_of(peers_,
                              [](const auto& p) { return p != nullptr && p->link.has_sends(); });
}

Receipt TcpTransport::PostReceive(int rank, std::span<std::byte> bytes) {
  RM_CHECK(rank >= 0 && rank < world() && rank != membership_.rank && peer(rank).takes_part,
           "a receive from nobody");
  if (peer(rank).link.path() == Path::kUnsettled) Connect(rank);
  if (waits_long_) TellWaiting(rank);
  return {rank, peer(rank).link.PostReceive(bytes)};
}

Receipt TcpTransport::PostCombine(int rank, const Combining& combining) {
  RM_CHECK(rank >= 0 && rank < world() && rank != membership_.rank && peer(rank).takes_part,
           "a receive from nobody");
  const size_t size = combining.into.size();
  RM_CHECK(combining.mine.size() == size, "combined into another length");
  RM_CHECK(combining.outer.empty() || combining.outer.size() == size,
           "combined with another length");
  if (peer(rank).link.path() == Path::kUnsettled) Connect(rank);
  if (waits_long_) TellWaiting(rank);
  return {rank, peer(rank).link.PostReceive(combining)};
}

absl::Status TcpTransport::Dial(int rank, SteadyTime now) {
  Peer& p = peer(rank);
  RM_ASSIGN_OR_RETURN(std::optional<Connection> connection, p.dialer->Step(now));
  if (!connection) return absl::OkStatus();
  p.dialer.reset();
  RM_RETURN_IF_ERROR(TuneConnection(connection->fd.get(), timeouts_.operation));
  ChooseCongestion(connection->fd.get(), connections_.congestion_control);
  p.link.Attach(std::move(connection->fd), now, std::move(connection->tls));
  Offer(rank);
  return p.link.Write(now);
}

bool TcpTransport::Deliver(int rank, Connection connection) {
  const std::lock_guard lock(mutex_);
  if (connections_due_[static_cast<size_t>(rank)] == 0) return false;
  --connections_due_[static_cast<size_t>(rank)];
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
    Peer& p = peer(rank);
    const bool for_last_words = rank > membership_.rank || p.link.attached();
    Link& link = for_last_words ? NewLastWords(rank) : p.link;
    // A connection that cannot be tuned is broken, which the first read tells with a better reason.
    TuneConnection(connection.fd.get(), timeouts_.operation).IgnoreError();
    ChooseCongestion(connection.fd.get(), connections_.congestion_control);
    link.Attach(std::move(connection.fd), now, std::move(connection.tls));
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
