// Each part straight from the rank that has it to the one that wants it. Called inside an operation
// of the transport; blocking and errors as Transport's. They do not call Finish.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "runtime/collectives/element.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives {

// Rank r's part of the parts of these lengths goes to `root`; `out` is used there alone, and `mine`
// may be its part of it.
absl::Status DirectGather(Transport& transport, int root, ConstElements mine,
                          std::span<const size_t> counts, Elements out, size_t segment_bytes);

// The other way: `in` is used on `root` alone.
absl::Status DirectScatter(Transport& transport, int root, ConstElements in,
                           std::span<const size_t> counts, Elements mine, size_t segment_bytes);

// send_counts[r] elements of `in` go to rank r, receive_counts[r] of `out` come from it. No
// overlap.
absl::Status DirectAllToAll(Transport& transport, ConstElements in,
                            std::span<const size_t> send_counts, Elements out,
                            std::span<const size_t> receive_counts, size_t segment_bytes);

}  // namespace ringmaster::collectives

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_ALGORITHMS_DIRECT_H_
