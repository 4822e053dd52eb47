// One shot: every rank sends all it has to every other and combines everything itself, for what is
// so small that a second latency would be most of its time. Called inside an operation of the
// transport; blocking and errors as Transport's.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_ONE_SHOT_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_ONE_SHOT_H_

#include <cstddef>

#include "absl/status/status.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// out = every rank's `in` combined in the order of ranks, so that all get the same bits; in one
// step, of W-1 messages (for longer arrays as many times over as they have segments). Known as
// one-shot from the allreduce kernels of MSCCL++ and TensorRT-LLM. Where the result is to lie over
// an input that is still needed, it gets a place of its own first, as long as the array. May call
// Finish. At least two ranks.
absl::Status OneShotAllreduce(Transport& transport, const Combiner& combine, ConstElements in,
                              Elements out, size_t segment_bytes);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_ONE_SHOT_H_
