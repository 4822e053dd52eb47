// Recursive halving, then recursive doubling: few steps and few bytes, for what is neither small
// nor large. Called inside an operation of the transport; blocking and errors as Transport's.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_HALVING_DOUBLING_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_HALVING_DOUBLING_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// out = every rank's `in` combined, the same bits on each. In step k two ranks 2^k apart, each of
// which has the combined values of 2^k ranks for a part of the array, swap halves of it; after
// log2(W) steps each rank has the whole result of n/W bytes, and the same steps backwards spread
// it. The nearest come first: they swap the most. 2 log2(W) steps, 2n(W-1)/W bytes out of each
// rank; where W is no power of two, n more before and n after (places.h). (Rabenseifner, "A new
// optimized MPI reduce algorithm", 1997.) At least two ranks; does not call Finish.
absl::Status HalvingDoublingAllreduce(Transport& transport, const Combiner& combine,
                                      ConstElements in, Elements out, size_t segment_bytes);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_HALVING_DOUBLING_H_
