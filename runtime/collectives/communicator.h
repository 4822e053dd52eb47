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
// with the same name, type and count; Send and Receive by the two ranks that they name. A rank that
// does otherwise is found within a round trip, or a hundredth of a second where both only wait:
// both sides fail with kFailedPrecondition, naming both ranks and both operations. Ranks that wait
// for one another in a circle in which no two disagree (by receives, or in groups that overlap)
// find it in about a tenth of a second, and fail in the same way, naming all of them.
//
// Threads: one operation at a time, over all groups of the round. A second one called from another
// thread while one runs returns kFailedPrecondition and changes nothing; Start queues them. Abort,
// status and stats may be called from any thread at any time. The destructor must not run beside a
// call.
//
// Blocking: every operation blocks until this rank's part is done. Every wait is bounded: a peer
// that is silent for `operation_timeout` while this rank waits for it is named and the communicator
// fails with kDeadlineExceeded. A peer that itself waits inside an operation is not silent (it says
// so), so the one that is named is the one that hangs.
//
// Errors: the first error of any kind poisons the communicator: the failing call returns it, the
// peers are told, and each later call returns kAborted naming that first cause. Nothing heals it;
// the next round has its own. Where memory runs out inside an operation that is
// kResourceExhausted, and on all ranks suspect() is that one. Inputs are never written to, unless
// they are the output, so after an error the caller still holds its own contribution whole; an
// output holds the whole result after OK and is unspecified after an error.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_COMMUNICATOR_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_COMMUNICATOR_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/status.h"
#include "runtime/collectives/algorithm.h"
#include "runtime/collectives/call_queue.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/element.h"
#include "runtime/collectives/membership.h"
#include "runtime/collectives/selector.h"
#include "runtime/collectives/stats.h"
#include "runtime/collectives/transport/choice.h"

namespace ringmaster::collectives {

namespace tcp {
class Listener;
}
class Accelerator;
class Transport;
struct Operation;
struct Scope;

struct CommunicatorOptions : Membership {
  // How long a peer may take to be reachable and in this round. Raise it where pods start far
  // apart. A lower rank, which is the one that connects, has at least `operation_timeout`: it may
  // be in this round and at work.
  std::chrono::milliseconds connect_timeout{20'000};

  // How long a peer may be silent while this rank waits for it. It must exceed the longest time
  // between two operations on any rank (a step's computation, a checkpoint's copy).
  std::chrono::milliseconds operation_timeout{60'000};

  // The largest payload of one frame, in bytes. Smaller overlaps better and costs more system
  // calls; tests set it low to reach the paths with many segments cheaply. From 64 to 2^30.
  size_t segment_bytes = 256 * 1024;

  // What every operation that has this algorithm takes, instead of what the cost model chooses; the
  // same on every rank.
  Algorithm algorithm = Algorithm::kAuto;

  TransportChoice transport = TransportChoice::kAuto;

  // The same on every rank: two that differ refuse one another.
  Encryption encryption = Encryption::kNone;

  // Which of the kernel's congestion controls connections use: auto, machine, or one by name
  // (transport/tcp/congestion.h). Ranks may differ.
  std::string congestion_control = "auto";

  // The shared memory between two ranks, in bytes for each direction: a power of two from 4096 on.
  // 0 takes as much as suits a processor's caches, less where there are many ranks.
  size_t shared_memory_bytes = 0;
};

class Communicator {
 public:
  // Opens the round on `listener`, which must outlive the communicator. Does not wait for the
  // peers: connections are made by the first operation that needs them. From here on the listener
  // refuses peers of older rounds. kInvalidArgument: the options contradict themselves, or
  // name a congestion control that this machine does not allow;
  // kFailedPrecondition: the listener has seen this round or a later one.
  static absl::StatusOr<std::unique_ptr<Communicator>> Create(const CommunicatorOptions& options,
                                                              tcp::Listener& listener);

  // A group over any transport; `segment_bytes` and `algorithm` as in the options.
  Communicator(std::unique_ptr<Transport> transport, size_t segment_bytes,
               Algorithm algorithm = Algorithm::kAuto);

  // The last communicator of the round (see Group) tells the peers that this rank leaves, if it has
  // not failed, and closes the connections. Blocks where asynchronous operations of this one are
  // pending: their round is aborted, and they are done within 100 ms. Beside that for at most a
  // second, where peers have not taken what was sent to them, and for half of one, where a failure
  // is still to be told over connections that are being encrypted.
  ~Communicator();

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const;
  int world() const;
  uint64_t round() const;
  // No other communicator of this process has or had it; from 1.
  uint64_t serial() const { return serial_; }

  // A process group: a communicator among `ranks` of this one, over the same connections. Its rank
  // r is ranks[r]; this rank must be among them, and none twice. Local: nothing is sent, but every
  // member makes the group with the same list and name, which count as part of each operation. It
  // shares this one's round and fate: one operation at a time over both, a failure in either fails
  // both, with the same cause, and the connections last as long as the last of them.
  //
  // Groups may overlap in any way. Two ranks must make the operations in which both take part, of
  // all their groups, in the same order; where they do not, both are told so with both operations.
  absl::StatusOr<std::unique_ptr<Communicator>> Group(std::span<const int> ranks,
                                                      std::string_view name);

  // Divides this communicator into groups: those that call with the same `color`, by `key`, then by
  // rank. Every rank calls it; one with a negative color gets no group, which is a null pointer.
  absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key, std::string_view name);

  // Starts a call of this communicator's operations and returns at once:
  //
  //   Handle sum = comm.Start([&] { return comm.Allreduce(Reduction::kSum, in, out, "w"); });
  //   ...
  //   RM_RETURN_IF_ERROR(sum.Wait());
  //
  // The calls of all communicators of a round run one after another on one thread, in the order in
  // which they were started; an operation that is called without Start while some are pending runs
  // after them. So the order of operations is that of the program, as if none were asynchronous.
  // What `call` uses must live until it is done: wait for the handle, or for a later one. Start
  // from one thread at a time. What `call` holds is let go on that thread, a little after it is
  // done, and may be the last communicator of the round. It must not end one that has calls
  // pending, as this one has then: that would wait for itself.
  Handle Start(std::function<absl::Status()> call);

  // The same for the operations of these names.
  Handle AllreduceAsync(Reduction reduction, ConstElements in, Elements out, std::string_view name);
  Handle BroadcastAsync(int root, Elements data, std::string_view name);
  Handle SendAsync(int to, ConstElements data, std::string_view name);
  Handle ReceiveAsync(int from, Elements data, std::string_view name);

  // Every operation takes views of the elements' memory (element.h): any contiguous range of a type
  // that they know, or bytes and a type. `in` and `out` are of one type. Results of sum, average
  // and product depend on the world size in their last bits, where numbers are rounded
  // (OrderedSum's do not), but are the same bits on every rank. Averages are summed in a type wide
  // enough (int64, float) and rounded once; those of integers drop what is behind the point.

  // out = every rank's `in` combined element by element. `out` is as long as `in`, and the same
  // memory or without overlap.
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
  // send_counts[a]: two that disagree diverge, and are told so. `out` may be `in`, which
  // costs a copy, or does not overlap it.
  absl::Status AllToAll(ConstElements in, std::span<const size_t> send_counts, Elements out,
                        std::span<const size_t> receive_counts, std::string_view name);

  // Copies `data` to rank `to`, which must call Receive for this rank with the same type, count and
  // name. The two alone take part: whatever others do meanwhile does not matter, but what these two
  // do with one another, groups' operations included, they must do in one order. Send returns when
  // the transport has the bytes, which may be before the peer has asked for them. Two ranks that
  // both send first diverge and are told so; SendReceive is for that.
  absl::Status Send(int to, ConstElements data, std::string_view name);
  absl::Status Receive(int from, Elements data, std::string_view name);

  // Both at once: `out` to rank `to`, `in` from rank `from`, which may be the same; as around a
  // ring. Every rank that one of them names must make the call that fits, with the same name and
  // the length that is sent to it. No overlap of `out` and `in`, which are of one type.
  absl::Status SendReceive(int to, ConstElements out, int from, Elements in, std::string_view name);

  // The same where no rank knows the others' sizes: element r of the result is rank r's `mine`.
  // Meant for small messages; a part may have at most 64 MiB.
  absl::StatusOr<std::vector<std::string>> AllgatherBytes(std::span<const std::byte> mine,
                                                          std::string_view name);

  // Returns after every rank has entered it.
  absl::Status Barrier(std::string_view name);

  // For what is made of several operations and takes memory between them: runs `body`, and ends the
  // round where memory runs out in it, as inside an operation: kResourceExhausted, on all ranks
  // suspect() is this one, and the message names `what`. Blocks and fails as `body` does.
  absl::Status Guard(std::string_view what, absl::FunctionRef<absl::Status()> body);

  // For algorithms that live outside this class (OrderedSum): runs `body` as one operation of the
  // group. `body` posts sends and receives on the transport; the operation ends when all of them
  // are done. An error of `body` poisons the communicator.
  absl::Status Run(const Operation& operation, absl::FunctionRef<absl::Status(Transport&)> body);

  // The largest payload of one frame.
  size_t segment_bytes() const { return selector_.segment_bytes(); }

  // Measures the round's links, in some milliseconds where each rank has a processor, and chooses
  // by what it found from then on; a collective operation. All ranks end with the same numbers, the
  // worst of any, in the best of several turns. Until then the cost model's built-in numbers
  // choose, and every rank is taken for a node of its own. `machine` names the machine that this
  // rank shares memory on; empty: found out.
  //
  // Sums that are rounded may have other bits after it, as another algorithm may be chosen; those
  // of OrderedSum have the same, whatever is chosen.
  absl::Status Fit(std::string_view machine = {});

  // What chooses the algorithm of each operation.
  const Selector& selector() const { return selector_; }

  // From now on the operations of this round, and those of its groups, are the accelerator's as far
  // as it takes them: it knows how to combine, and they are no Barrier, AllgatherBytes or Run.
  // Every rank calls it between the same two operations. It is destroyed with the last communicator
  // of the round, or at once where that is ending. (For nccl.h; a round has one at most.)
  void Accelerate(std::unique_ptr<Accelerator> accelerator);

  // Fails the communicator with kAborted and this reason, wakes whoever waits in it within 100 ms
  // and tells the peers, who fail with the same reason. No effect if it has failed already. With an
  // accelerator it also waits until that has ended what was on its way.
  void Abort(std::string_view reason);

  // OK, or kAborted naming the first cause.
  absl::Status status() const;

  // The rank, of the round and not of a group, that the first cause blames (it died, hangs,
  // diverged, or ran out of memory), or -1: none, or not failed.
  int suspect() const;

  // What this communicator has done so far.
  CommunicatorStats stats() const;

 private:
  // What the communicators of one round share.
  struct Shared {
    Shared();
    ~Shared();
    std::atomic<bool> running = false;  // an operation is in progress
    // Up to the end of the last one; for who runs one.
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
    CallQueue queue;
    std::unique_ptr<Accelerator> accelerator;
  };

  Communicator(std::shared_ptr<Transport> transport, std::shared_ptr<Shared> shared,
               Selector selector);

  // Begin, `body` and Finish; an error ends the round. kResourceExhausted: memory ran out on the
  // way, and this rank is the suspect.
  absl::Status Perform(const Scope& scope, const Operation& operation,
                       absl::FunctionRef<absl::Status(Transport&)> body);
  absl::Status RunAmong(const Scope& scope, const Operation& operation,
                        absl::FunctionRef<absl::Status(Transport&)> body);
  // Group, Split and AllgatherBytes, but for memory that runs out.
  absl::StatusOr<std::unique_ptr<Communicator>> MakeGroup(std::span<const int> ranks,
                                                          std::string_view name);
  absl::StatusOr<std::unique_ptr<Communicator>> Divide(int color, int key, std::string_view name);
  absl::Status GatherBytes(std::span<const std::byte> mine, std::string_view name,
                           std::vector<std::string>* parts);
  // How an operation is done that moves arrays of `bytes`, and where it reduces, by which
  // reduction.
  Method MethodFor(OperationKind kind, size_t bytes) const;
  Method MethodFor(OperationKind kind, Reduction reduction, ConstElements in) const;
  absl::Status CheckPeer(int peer, std::string_view name) const;
  absl::Status CheckRoot(int root, std::string_view name) const;
  // That there is a part for each rank, that this one's has `mine` elements, and all have `all`.
  absl::Status CheckParts(std::span<const size_t> counts, size_t mine, size_t all,
                          std::string_view name) const;
  void TellPeersIfFailed();

  const uint64_t serial_;
  const std::shared_ptr<Transport> transport_;
  const std::shared_ptr<Shared> shared_;
  Selector selector_;

  // Written by the operation in progress alone, read by any thread. What a reader sees of different
  // counters may belong to different moments.
  struct Counters {
    std::atomic<uint64_t> calls = 0;
    std::atomic<uint64_t> bytes_sent = 0;
    std::atomic<uint64_t> bytes_received = 0;
  };
  std::atomic<uint64_t> sharing_peers_ = 0;
  std::array<Counters, kOperationKinds> counters_;
};

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_COMMUNICATOR_H_
