// Several blocking calls at once, with a bound.
#ifndef RINGMASTER_OPERATOR_MANAGER_PARALLEL_H_
#define RINGMASTER_OPERATOR_MANAGER_PARALLEL_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"

namespace ringmaster::manager {

// Calls call(0) .. call(count - 1), at most `bound` at a time, and returns when all have returned:
// the error of the lowest index that had one. One failure does not keep the others from being
// tried. With a bound of 1 they run in order on this thread; otherwise on threads of their own, so
// `call` must be thread-safe and must not throw.
absl::Status ForEachParallel(std::size_t count, int bound,
                             const std::function<absl::Status(std::size_t)>& call);

}  // namespace ringmaster::manager

#endif  // RINGMASTER_OPERATOR_MANAGER_PARALLEL_H_
