// Collective operations among the workers of one round.
//
// A Communicator is one group in one round of the job's membership. The trainer makes one per round
// and drops it when the round ends; it never lives on into the next. It knows arrays of numbers,
// never tensors.
//
//   // Once per process:
//   RM_ASSIGN_OR_RETURN(auto listener, tcp::Listener::Open("10.0.0.7:7473"));
//   // Once per round:
//   CommunicatorOptions options;
//   options.job = "default/digits";
//   options.round = 7;
//   options.rank = 2;
//   options.members = {...};
//   options.key = round_key;
//   RM_ASSIGN_OR_RETURN(auto comm, Communicator::Create(options, *listener));
//   RM_RETURN_IF_ERROR(comm->Allreduce(Reduction::kSum, gradient, sum, "conv1/weight"));
//
// Which ranks call: every operation must be called by every rank of the group, in the same order,
// with the same name, type and count. A rank that does otherwise is found within a round trip: both
// sides fail with kFailedPrecondition, naming both ranks and both operations.
//
// Threads: one operation at a time. A second one started while one runs returns kFailedPrecondition
// and changes nothing. Abort, status and stats may be called from any thread at any time. The
// destructor must not run beside a call.
//
// Blocking: every operation blocks until this rank's part is done. Every wait is bounded: a peer
// that is silent for `operation_timeout` while this rank waits for it is named and the communicator
// fails with kDeadlineExceeded. A peer that itself waits inside an operation is not silent (it says
// so), so the one that is named is the one that hangs.
//
// Errors: the first error of any kind poisons the communicator: the failing call returns it, the
// peers are told, and each later call returns kAborted naming that first cause. Nothing heals it;
// the next round has its own. Inputs are never written to, unless they are the output, so after an
// error the caller still holds its own contribution whole; an output holds the whole result after
// OK and is unspecified after an error.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_COMMUNICATOR_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_COMMUNICATOR_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/element.h"
#include "runtime/collectives/membership.h"
#include "runtime/collectives/stats.h"

namespace ringmaster::collectives {

namespace tcp {
class Listener;
}
class Transport;
struct Operation;

struct CommunicatorOptions : Membership {
  // How long a peer may take to be reachable and in this round. Raise it where pods start far
  // apart.
  std::chrono::milliseconds connect_timeout{20'000};

  // How long a peer may be silent while this rank waits for it. It must exceed the longest time
  // between two operations on any rank (a step's computation, a checkpoint's copy).
  std::chrono::milliseconds operation_timeout{60'000};

  // The largest payload of one frame, in bytes. Smaller overlaps better and costs more system
  // calls; tests set it low to reach the paths with many segments cheaply. At least 64.
  size_t segment_bytes = 256 * 1024;
};

class Communicator {
 public:
  // Opens the round on `listener`, which must outlive the communicator. Does not wait for the
  // peers: connections are made by the first operation that needs them. From here on the listener
  // refuses peers of older rounds. kInvalidArgument: the options contradict themselves;
  // kFailedPrecondition: the listener has seen this round or a later one.
  static absl::StatusOr<std::unique_ptr<Communicator>> Create(const CommunicatorOptions& options,
                                                              tcp::Listener& listener);

  // A group over any transport; `segment_bytes` as in the options.
  Communicator(std::unique_ptr<Transport> transport, size_t segment_bytes);

  // Tells the peers that this rank leaves (if it has not failed) and closes the connections. Does
  // not block.
  ~Communicator();

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;
  int world() const;
  uint64_t round() const;

  // Every operation takes views of the elements' memory (element.h): any contiguous range of a type
  // that they know, or bytes and a type. `in` and `out` are of one type. Results of sum, average
  // and product depend on the world size in their last bits, where numbers are rounded
  // (OrderedSum's do not), but are the same bits on every rank. Averages are summed in a type wide
  // enough (int64, float) and rounded once; those of integers drop what is behind the point.

  // out = every rank's `in` combined element by element. `out` is as long as `in`, and the same
  // memory or without overlap. Small ones take log2(W) steps, others the ring's 2(W-1), in which
  // 2(W-1)/W of the bytes go out of each rank.
  absl::Status Allreduce(Reduction reduction, ConstElements in, Elements out,
                         std::string_view name);

  // The same, of which rank r gets a part of counts[r] elements, the same list on every rank. `out`
  // has counts[rank()] elements, and is this rank's part of `in` or does not overlap it.
  absl::Status ReduceScatter(Reduction reduction, ConstElements in, std::span<const size_t> counts,
                             Elements out, std::string_view name);

  // The same for rank `root` alone: `out` is not looked at on any other.
  absl::Status Reduce(Reduction reduction, int root, ConstElements in, Elements out,
                      std::string_view name);

  // Fills `data` of every rank with that of rank `root`. On the root `data` is only read.
  absl::Status Broadcast(int root, Elements data, std::string_view name);

  // out = the parts of ranks 0, 1, ... one after another. counts[r] is the length of rank r's part,
  // the same list on every rank; `mine` has counts[rank()] elements, `out` their sum. `mine` is
  // this rank's part of `out` or does not overlap it.
  absl::Status Allgather(ConstElements mine, std::span<const size_t> counts, Elements out,
                         std::string_view name);

  // The same for rank `root` alone: `out` is not looked at on any other.
  absl::Status Gather(int root, ConstElements mine, std::span<const size_t> counts, Elements out,
                      std::string_view name);

  // The other way: `mine` = part rank() of the `in` of rank `root`, which is not looked at on any
  // other.
  absl::Status Scatter(int root, ConstElements in, std::span<const size_t> counts, Elements mine,
                       std::string_view name);

  // send_counts[r] elements of `in`, whose parts lie one after another, go to rank r;
  // receive_counts[r] of `out` come from it. Rank a's receive_counts[b] must be rank b's
  // send_counts[a]: a rank that finds another length fails with kDataLoss. `out` may be `in`, which
  // costs a copy, or does not overlap it.
  absl::Status AllToAll(ConstElements in, std::span<const size_t> send_counts, Elements out,
                        std::span<const size_t> receive_counts, std::string_view name);

  // The same where no rank knows the others' sizes: element r of the result is rank r's `mine`.
  // Meant for small messages; a part may have at most 64 MiB.
  absl::StatusOr<std::vector<std::string>> AllgatherBytes(std::span<const std::byte> mine,
                                                          std::string_view name);

  // Returns after every rank has entered it.
  absl::Status Barrier(std::string_view name);

  // For algorithms that live outside this class (OrderedSum): runs `body` as one operation of the
  // group. `body` posts sends and receives on the transport; the operation ends when all of them
  // are done. An error of `body` poisons the communicator.
  absl::Status Run(const Operation& operation, const std::function<absl::Status(Transport&)>& body);

  // The largest payload of one frame.
  size_t segment_bytes() const { return segment_bytes_; }

  // Fails the communicator with kAborted and this reason, wakes whoever waits in it within 100 ms
  // and tells the peers, who fail with the same reason. No effect if it has failed already.
  void Abort(std::string_view reason);

  // OK, or kAborted naming the first cause.
  absl::Status status() const;

  // The rank that the first cause blames (it died, hangs, or diverged), or -1: none, or not failed.
  int suspect() const;

  // What this communicator has done so far.
  CommunicatorStats stats() const;

 private:
  absl::Status CheckRoot(int root, std::string_view name) const;
  // That there is a part for each rank, that this one's has `mine` elements, and all have `all`.
  absl::Status CheckParts(std::span<const size_t> counts, size_t mine, size_t all,
                          std::string_view name) const;
  void TellPeersIfFailed();

  std::unique_ptr<Transport> transport_;
  const size_t segment_bytes_;
  std::mutex running_;          // held by the operation in progress
  uint64_t next_sequence_ = 1;  // guarded by running_
  mutable std::mutex stats_mutex_;
  CommunicatorStats stats_;  // guarded by stats_mutex_
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_COMMUNICATOR_H_
