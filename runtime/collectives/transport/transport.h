// What a collective needs from the wires: ordered, reliable messages between the ranks of one
// round.
//
// An algorithm runs between Begin and Finish. It posts sends and receives; the transport moves
// bytes in all directions whenever the algorithm waits, so two ranks that send to one another at
// once never block each other. Messages between two ranks arrive in the order in which they were
// posted, and a receive must have the size of the message that it meets.
//
//   RM_RETURN_IF_ERROR(transport.Begin(operation, Scope()));
//   transport.PostSend(next, mine);
//   RM_RETURN_IF_ERROR(transport.Wait(transport.PostReceive(previous, theirs)));
//   RM_RETURN_IF_ERROR(transport.Finish());
//
// Errors: the first one is final. It ends the operation, is sent to the peers as far as they can be
// reached within a few hundredths of a second, and is what every later call returns. Posted memory
// is not touched any more once a call has returned an error.
//
// Threads: Begin ... Finish by one thread at a time; Abort, failure and the accessors from any.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TRANSPORT_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/operation.h"
#include "runtime/collectives/transport/workspace.h"

namespace ringmaster::collectives {

// A posted receive: the `number`-th from `peer` in this operation.
struct Receipt {
  int peer = 0;
  uint64_t number = 0;
};
// In a transport's workspace, as everything that lasts as long as the operation.
using Receipts = std::pmr::vector<Receipt>;

// What becomes of a message that is combined with this rank's values as it arrives.
struct Combining {
  Combiner combiner;
  std::span<const std::byte> mine;  // whole elements, as long as the message
  std::span<std::byte> into;        // as long; the memory of `mine`, or without overlap
  bool arrived_is_left = false;     // which operand the message is: it decides between -0 and 0
  // As long, or nothing: what both are combined with then, on the left. `into`, or no overlap.
  std::span<const std::byte> outer{};
};

// Whom an operation is among, and on whose behalf.
struct Scope {
  std::span<const int> ranks{};  // who takes part; empty: every rank. This one need not be listed
  uint64_t group = 0;            // part of what must agree: which group's operation it is
  std::string_view name{};       // that group's, for messages; empty: the whole round
};

// Why a round ended for this rank.
struct Failure {
  absl::Status status;  // OK: it has not
  int suspect = -1;     // the rank to blame, or -1
};

struct Traffic {
  uint64_t bytes_sent = 0;  // payload only
  uint64_t bytes_received = 0;
  uint64_t sharing_peers = 0;  // ranks with which data goes through shared memory
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;
  virtual int world() const = 0;
  virtual uint64_t round() const = 0;
  // A rank as the round counts them, where the transport is one of its groups.
  virtual int RoundRankOf(int rank) const { return rank; }
  int round_rank() const { return RoundRankOf(rank()); }

  // Memory for what the operation in progress keeps until it is over. Whoever begins operations
  // resets it before each.
  virtual Workspace& workspace() = 0;

  // Starts an operation among `scope`. Each pair of ranks counts the operations in which both take
  // part: 1, 2, ... A peer seen in another operation of that number is an error at once, so two
  // ranks must make all calls that they share, of whatever groups, in the same order; operations
  // of others do not touch them. What is viewed must live until the operation ends.
  virtual absl::Status Begin(const Operation& operation, const Scope& scope) = 0;

  // Says that this operation will talk to `peer`, so that the connection is made now. Optional; an
  // algorithm calls it where its first message to a peer depends on another's, so that a peer that
  // waits here is heard.
  virtual void Connect(int peer) = 0;

  // Queues `bytes` for `peer`. They must stay as they are until Finish, or until it follows from
  // what was received that the peer has them. True: the transport has copied them already, so they
  // may change at once.
  virtual bool PostSend(int peer, std::span<const std::byte> bytes) = 0;

  // The same for each of `peers`, in their order, among which this rank may be. For those that
  // share memory with it, the bytes may be written once for all.
  virtual bool PostSendToEach(std::span<const int> peers, std::span<const std::byte> bytes) {
    bool copied = true;
    for (const int peer : peers) {
      if (peer != rank()) copied = PostSend(peer, bytes) && copied;
    }
    return copied;
  }

  // Sends what goes without waiting. True: all that was posted to be sent is copied by now, so it
  // may change. Errors as Wait's.
  virtual absl::StatusOr<bool> TrySends() { return false; }

  // Says where the next message from `peer` goes. The memory must stay until Finish or an error.
  virtual Receipt PostReceive(int peer, std::span<std::byte> bytes) = 0;

  // The same, with the message combined into place as it arrives: straight from where the transport
  // has it, without a copy. Its parts are combined in any order and at any time until the receive
  // is complete; `mine` and `outer` must stay as they are until then.
  virtual Receipt PostCombine(int peer, const Combining& combining) = 0;

  // Blocks until that receive is complete.
  virtual absl::Status Wait(Receipt receipt) = 0;

  // One look at the wires without waiting, for who waits in the middle of an operation for
  // something else than a message (a device): moves bytes, hears of failures, and tells peers that
  // this rank lives. `progress`: what it waits for has moved since the last look. Errors as Wait's,
  // of those who owe a message that was posted.
  virtual absl::Status Look(bool progress) = 0;

  // Blocks until everything posted is done, and ends the operation.
  virtual absl::Status Finish() = 0;

  // Ends the operation with an error that the algorithm found, while what it posted still lives.
  // Returns the first error, which may be another.
  virtual absl::Status Fail(Failure failure) = 0;

  // The same where what was posted may be gone already, as where memory ran out in the middle of an
  // algorithm: none of it is touched any more. A connection on which a message is half sent is cut.
  virtual absl::Status Abandon(Failure failure) = 0;

  // From any thread: the operation in progress, if any, ends with this within 100 ms.
  virtual void Abort(Failure failure) = 0;

  // Sends the failure to the peers, unless that was done. Call it where no operation is in
  // progress.
  virtual void TellPeers() = 0;

  // The first failure.
  virtual Failure failure() const = 0;
  // Whether there is one; asked several times in each operation.
  virtual bool has_failed() const { return !failure().status.ok(); }

  // All bytes so far. Exact between operations.
  virtual Traffic traffic() const = 0;
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TRANSPORT_H_
