// The reductions whose order of combining depends on the world size, each by the method that
// the selector chose. (The ordered sum is direct_sum.h.)
//
// Called inside an operation of the transport; blocking and errors as Transport's. They end what
// they posted from memory of their own, with Finish; the caller's operation goes on.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_REDUCE_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_REDUCE_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "runtime/collectives/combine.h"
#include "runtime/collectives/selector.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// `in` and `out` have the same type and length, and are the same memory or do not overlap.
absl::Status Allreduce(Transport& transport, const Method& method, Reduction reduction,
                       ConstElements in, Elements out);

// counts[r] elements of the result go to rank r: `out` has counts[rank], and may be that part of
// `in`.
absl::Status ReduceScatter(Transport& transport, const Method& method, Reduction reduction,
                           ConstElements in, std::span<const size_t> counts, Elements out);

// `out` is written to on rank `root` alone, and may be `in` there.
absl::Status Reduce(Transport& transport, const Method& method, Reduction reduction, int root,
                    ConstElements in, Elements out);

// The `data` of rank `root` to all.
absl::Status Broadcast(Transport& transport, const Method& method, int root, Elements data);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_REDUCE_H_
