// Recursive doubling: everything in log2(W) steps, for what is small. Called inside an operation of
// the transport; blocking and errors as Transport's.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DOUBLING_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DOUBLING_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/transport/frame.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// out = every rank's `in` combined, the same bits on each. Sends all of it log2(W) times; where W
// is no power of two, the ranks beyond one lend their values to a neighbour first and get the
// result from it at the end. (Thakur, Rabenseifner and Gropp, "Optimization of collective
// communication operations in MPICH", 2005.) At least two ranks. Where the transport does not copy
// what it is to send, a place in its workspace for a result of each step; calls Finish then. What
// is longer than `largest_message` goes in several, on every rank the same; tests set it low.
absl::Status DoublingAllreduce(Transport& transport, const Combiner& combine, ConstElements in,
                               Elements out, size_t largest_message = kMaxDataBytes);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DOUBLING_H_
