// What carries out whole operations in place of the algorithms: a vendor's library that knows its
// devices and their links (NCCL). The round's transport stays beside it: over it the ranks agree on
// each operation before it begins, hear of failures while it runs, and send what the accelerator
// does not take.
//
// Each function is called inside an operation of the transport, as the algorithms are, by every
// rank of it with arguments that agree; blocking, deadlines and errors are Transport's, and after
// an error the round is over. They do not call Finish. One call at a time. Arrays may overlap as in
// Communicator's operations.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ACCELERATOR_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ACCELERATOR_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/element.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

struct Outgoing {
  int to = 0;
  std::span<const std::byte> bytes;
};
struct Incoming {
  int from = 0;
  std::span<std::byte> bytes;
};

// Messages of one rank that are on their way at the same time: one at most to each peer, and one
// from each, none to itself.
struct Exchange {
  std::vector<Outgoing> sends;
  std::vector<Incoming> receives;
  bool among_all = false;    // every rank of the transport takes part, else those that are named
  size_t most_messages = 2;  // of any rank that takes part; the same on all of them
};

class Accelerator {
 public:
  virtual ~Accelerator() = default;

  // "NCCL"
  virtual const char* name() const = 0;

  // Whether it combines so, as combine.h says; the same answer on every rank.
  virtual bool Combines(const Combiner& combiner) const = 0;

  virtual absl::Status Allreduce(Transport& transport, const Combiner& combiner, ConstElements in,
                                 Elements out) = 0;
  // `out` is counts[rank] elements.
  virtual absl::Status ReduceScatter(Transport& transport, const Combiner& combiner,
                                     ConstElements in, std::span<const size_t> counts,
                                     Elements out) = 0;
  // `out` is used on `root` alone.
  virtual absl::Status Reduce(Transport& transport, const Combiner& combiner, int root,
                              ConstElements in, Elements out) = 0;
  virtual absl::Status Broadcast(Transport& transport, int root, Elements data) = 0;
  virtual absl::Status Allgather(Transport& transport, ConstElements mine,
                                 std::span<const size_t> counts, Elements out) = 0;
  virtual absl::Status Run(Transport& transport, const Exchange& exchange) = 0;

  // The round has failed, in an operation of the accelerator's or elsewhere, and the peers were
  // told why: ends what is still on its way, here and so on other ranks. No operation is in
  // progress, and none follows; it may be called again.
  virtual void Abort() = 0;
};

// These are exchanges, and a copy of what stays on its rank; arguments as of algorithms/direct.h.
absl::Status Gather(Accelerator& accelerator, Transport& transport, int root, ConstElements mine,
                    std::span<const size_t> counts, Elements out);
absl::Status Scatter(Accelerator& accelerator, Transport& transport, int root, ConstElements in,
                     std::span<const size_t> counts, Elements mine);
absl::Status AllToAll(Accelerator& accelerator, Transport& transport, ConstElements in,
                      std::span<const size_t> send_counts, Elements out,
                      std::span<const size_t> receive_counts);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ACCELERATOR_H_
