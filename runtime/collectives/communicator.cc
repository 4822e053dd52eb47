#include "runtime/collectives/communicator.h"

#include <algorithm>
#include <bit>
#include <new>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "runtime/collectives/accelerator.h"
#include "runtime/collectives/algorithms/ring.h"
#include "runtime/collectives/algorithms/tree.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/timeline.h"
#include "runtime/collectives/transport/frame.h"
#include "runtime/collectives/transport/tcp/tcp_transport.h"

namespace ringmaster::collectives {
namespace {

constexpr size_t kMinSegmentBytes = 64;
constexpr size_t kMinSharedBytes = 4096;
constexpr size_t kMaxSharedBytes = size_t{1} << 39;
constexpr uint64_t kMaxMessageBytes = uint64_t{64} << 20;

// The turn of an operation, if nobody else has it: a mutex that nobody ever waits for.
class Turn {
 public:
  explicit Turn(std::atomic<bool>& running)
      : running_(running), taken_(!running.exchange(true, std::memory_order_seq_cst)) {}
  ~Turn() { End(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool taken() const { return taken_; }
  // Sequentially consistent, as is how a failure is recorded: of one that ends its turn and then
  // asks for a failure, and one that records it and then asks for a turn, at least one sees what
  // the other did.
  void End() {
    if (std::exchange(taken_, false)) running_.store(false, std::memory_order_seq_cst);
  }

 private:
  std::atomic<bool>& running_;
  bool taken_;
};

uint64_t NextSerial() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

// By the only thread that writes to it.
void Raise(std::atomic<uint64_t>& counter, uint64_t by) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> Communicator::Create(
    const CommunicatorOptions& options, tcp::Listener& listener) {
  if (options.segment_bytes < kMinSegmentBytes || options.segment_bytes > kMaxDataBytes) {
    return absl::InvalidArgumentError(fmt::format("segment_bytes: {}; from {} to {}",
                                                  options.segment_bytes, kMinSegmentBytes,
                                                  kMaxDataBytes));
  }
  if (options.connect_timeout.count() <= 0 || options.operation_timeout.count() <= 0) {
    return absl::InvalidArgumentError("connect_timeout and operation_timeout must be positive");
  }
  if (const size_t bytes = options.shared_memory_bytes;
      bytes != 0 &&
      (!std::has_single_bit(bytes) || bytes < kMinSharedBytes || bytes > kMaxSharedBytes)) {
    return absl::InvalidArgumentError(
        fmt::format("shared_memory_bytes: {}; a power of two from {} to {}", bytes, kMinSharedBytes,
                    kMaxSharedBytes));
  }
  const tcp::Timeouts timeouts{options.connect_timeout, options.operation_timeout};
  RM_ASSIGN_OR_RETURN(
      auto transport,
      tcp::TcpTransport::Create(options, timeouts, {options.transport, options.shared_memory_bytes},
                                listener, {options.encryption, options.congestion_control}));
  return std::make_unique<Communicator>(std::move(transport), options.segment_bytes,
                                        options.algorithm);
}

Communicator::Communicator(std::unique_ptr<Transport> transport, size_t segment_bytes,
                           Algorithm algorithm)
    : serial_(NextSerial()),
      transport_(std::move(transport)),
      shared_(std::make_shared<Shared>()),
      selector_(NodeMap::Apart(transport_->world()), CostModel(), segment_bytes, algorithm) {}

Communicator::Communicator(std::shared_ptr<Transport> transport, std::shared_ptr<Shared> shared,
                           Selector selector)
    : serial_(NextSerial()),
      transport_(std::move(transport)),
      shared_(std::move(shared)),
      selector_(std::move(selector)) {}

Communicator::Shared::Shared() = default;
Communicator::Shared::~Shared() = default;

Communicator::~Communicator() {
  if (!shared_->queue.HasCallsOf(this)) return;
  Abort("it left while operations that it had started were pending");
  shared_->queue.WaitForCallsOf(this);
}

void Communicator::Accelerate(std::unique_ptr<Accelerator> accelerator) {
  Turn turn(shared_->running);
  // Who has it is ending the round, and may have looked for one already.
  if (!turn.taken()) return accelerator->Abort();
  shared_->accelerator = std::move(accelerator);
  turn.End();
  TellPeersIfFailed();
}

int Communicator::rank() const {
  return transport_->rank();
}
int Communicator::world() const {
  return transport_->world();
}
uint64_t Communicator::round() const {
  return transport_->round();
}

absl::Status Communicator::Run(const Operation& operation,
                               absl::FunctionRef<absl::Status(Transport&)> body) {
  return RunAmong(Scope(), operation, body);
}

// After an error or an exception what the body had posted from memory of its own is gone.
absl::Status Communicator::Perform(const Scope& scope, const Operation& operation,
                                   absl::FunctionRef<absl::Status(Transport&)> body) {
  try {
    transport_->workspace().Reset();
    absl::Status status = transport_->Begin(operation, scope);
    if (status.ok()) status = body(*transport_);
    if (status.ok()) status = transport_->Finish();
    if (status.ok()) return status;
    // The transport's own errors say where they were found.
    if (!transport_->has_failed()) {
      status = Annotate(
          status, fmt::format("rank {} in {}", transport_->round_rank(), operation.Describe()));
    }
    return transport_->Abandon({status, -1});
  } catch (const std::bad_alloc&) {
    const int self = transport_->round_rank();
    return transport_->Abandon({absl::ResourceExhaustedError(fmt::format(
                                    "rank {} ran out of memory in {}", self, operation.Describe())),
                                self});
  }
}

absl::Status Communicator::RunAmong(const Scope& scope, const Operation& operation,
                                    absl::FunctionRef<absl::Status(Transport&)> body) {
  CallQueue& queue = shared_->queue;
  if (!queue.IsIdle() && !queue.IsThisThread()) queue.WaitUntilIdle();
  // Before the turn: whoever has it may only be telling the peers that the round has failed.
  RM_RETURN_IF_ERROR(status());
  Turn turn(shared_->running);
  if (!turn.taken()) {
    RM_RETURN_IF_ERROR(status());  // it may have failed since, and who has it be telling the peers
    return absl::FailedPreconditionError(
        fmt::format("{} was called while another operation runs", operation.Describe()));
  }
  const Phase phase(OperationKindName(operation.kind));
  const absl::Status status = Perform(scope, operation, body);
  const Traffic after = transport_->traffic();
  Counters& counters = counters_[static_cast<size_t>(operation.kind)];
  Raise(counters.calls, 1);
  Raise(counters.bytes_sent,
        after.bytes_sent - std::exchange(shared_->bytes_sent, after.bytes_sent));
  Raise(counters.bytes_received,
        after.bytes_received - std::exchange(shared_->bytes_received, after.bytes_received));
  sharing_peers_.store(after.sharing_peers, std::memory_order_relaxed);
  turn.End();
  // An Abort that came while this operation was ending found the turn taken and left the telling to
  // us.
  TellPeersIfFailed();
  return status;
}

void Communicator::TellPeersIfFailed() {
  if (!transport_->has_failed()) return;
  const Turn turn(shared_->running);
  if (!turn.taken()) return;
  transport_->TellPeers();
  if (shared_->accelerator != nullptr) shared_->accelerator->Abort();
}

absl::StatusOr<std::vector<std::string>> Communicator::AllgatherBytes(
    std::span<const std::byte> mine, std::string_view name) {
  if (mine.size() > kMaxMessageBytes) {
    return absl::InvalidArgumentError(fmt::format("{}: {} bytes; a part may have at most {}", name,
                                                  mine.size(), kMaxMessageBytes));
  }
  std::vector<std::string> parts;
  RM_RETURN_IF_ERROR(Guard(name, [&] { return GatherBytes(mine, name, &parts); }));
  return parts;
}

absl::Status Communicator::GatherBytes(std::span<const std::byte> mine, std::string_view name,
                                       std::vector<std::string>* parts) {
  const size_t ranks = static_cast<size_t>(world());
  std::vector<size_t> sizes(ranks);
  std::vector<std::byte> all;
  const Operation operation{OperationKind::kAllgather, ElementType::kU8, 0, 0, name, ""};
  RM_RETURN_IF_ERROR(Run(operation, [&](Transport& t) -> absl::Status {
    const size_t size = mine.size();
    const std::vector<size_t> words(ranks, sizeof(size_t));
    RM_RETURN_IF_ERROR(RingAllgather(t, std::as_bytes(std::span(&size, 1)), words,
                                     std::as_writable_bytes(std::span(sizes)), segment_bytes()));
    const auto largest = std::max_element(sizes.begin(), sizes.end());
    if (*largest > kMaxMessageBytes) {
      return absl::DataLossError(
          fmt::format("rank {} announced {} bytes", largest - sizes.begin(), *largest));
    }
    all.resize(std::accumulate(sizes.begin(), sizes.end(), size_t{0}));
    return RingAllgather(t, mine, sizes, all, segment_bytes());
  }));
  const char* at = reinterpret_cast<const char*>(all.data());
  for (const size_t size : sizes) {
    parts->emplace_back(at, size);
    at += size;
  }
  return absl::OkStatus();
}

absl::Status Communicator::Barrier(std::string_view name) {
  const Operation operation{OperationKind::kBarrier, ElementType::kU8, 0, 0, name, ""};
  return Run(operation, [](Transport& t) { return DisseminationBarrier(t); });
}

void Communicator::Abort(std::string_view reason) {
  transport_->Abort({absl::AbortedError(fmt::format("rank {} aborted the round: {}",
                                                    transport_->round_rank(), reason)),
                     -1});
  TellPeersIfFailed();
}

absl::Status Communicator::status() const {
  if (!transport_->has_failed()) return absl::OkStatus();
  return absl::AbortedError("the round has failed: " + Message(transport_->failure().status));
}

int Communicator::suspect() const {
  return transport_->failure().suspect;
}

CommunicatorStats Communicator::stats() const {
  CommunicatorStats stats;
  stats.sharing_peers = sharing_peers_.load(std::memory_order_relaxed);
  for (size_t kind = 0; kind < kOperationKinds; ++kind) {
    const Counters& counters = counters_[kind];
    stats.by_kind[kind] = {counters.calls.load(std::memory_order_relaxed),
                           counters.bytes_sent.load(std::memory_order_relaxed),
                           counters.bytes_received.load(std::memory_order_relaxed)};
  }
  return stats;
}

}  // namespace ringmaster::collectives
