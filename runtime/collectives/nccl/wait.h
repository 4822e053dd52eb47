// Waiting for a device in the middle of an operation.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_NCCL_WAIT_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_NCCL_WAIT_H_

#include <chrono>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/collectives/transport/transport.h"

namespace ringmaster::collectives::nccl {

// Blocks until `done` says so, which is asked again and again, and looks at the transport in
// between: an abort, a peer that dies or hangs, and whatever else ends the operation ends this wait
// within milliseconds. `patience`: how long `what` may take. Errors are the transport's, those of
// `done`, and kDeadlineExceeded: the patience is over, though nobody is silent.
absl::Status WaitBeside(Transport& transport, std::chrono::milliseconds patience,
                        std::string_view what, absl::FunctionRef<absl::StatusOr<bool>()> done);

// After an error of the device's: blocks for some tenths of a second at most. The transport's
// error, where the ranks name one soon (NCCL sees that a connection has ended, the transport why),
// or OK. What this rank has posted must still live.
absl::Status LookForCause(Transport& transport);

}  // namespace ringmaster::collectives::nccl

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_NCCL_WAIT_H_
