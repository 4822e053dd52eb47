// Counters of a communicator, for the worker's metrics. Plain values; copy freely.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_STATS_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_STATS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace ringmaster::collectives {

// The kinds of operation; a closed set, usable as a metric's label (see OperationKindName).
enum class OperationKind : uint8_t {
  kAllreduce,
  kOrderedSum,
  kReduceScatter,
  kReduce,
  kBroadcast,
  kAllgather,
  kGather,
  kScatter,
  kAllToAll,
  kBarrier,
  kSend,  // with its receive: both sides count it
  kSendReceive,
};
inline constexpr size_t kOperationKinds = 12;

// "allreduce", "ordered_sum", "reduce_scatter", "reduce", "broadcast", "allgather", "gather",
// "scatter", "all_to_all", "barrier", "send", "send_receive".
const char* OperationKindName(OperationKind kind);

// Failed calls count too, with the bytes that they took.
struct OperationStats {
  uint64_t calls = 0;
  uint64_t bytes_sent = 0;      // payload handed to the transport
  uint64_t bytes_received = 0;  // payload received into this rank's buffers
};

struct CommunicatorStats {
  uint64_t sharing_peers = 0;  // ranks with which data went through shared memory
  std::array<OperationStats, kOperationKinds> by_kind;

  OperationStats& of(OperationKind kind) { return by_kind[static_cast<size_t>(kind)]; }
  const OperationStats& of(OperationKind kind) const { return by_kind[static_cast<size_t>(kind)]; }
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_STATS_H_
