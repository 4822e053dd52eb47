// Errors across module boundaries.
//
// Every fallible function of a public header returns absl::Status or absl::StatusOr<T>; no
// exception leaves a module. The codes have one meaning in all of Ringmaster, and one table
// (ExitCodeFor) says which exit code of a program each becomes:
//
//   kInvalidArgument     the user wrote something that can never work: a manifest, a flag, a data
//   file kNotFound            an object or file that was named is not there kAlreadyExists       an
//   object of that name is there already kAborted             optimistic concurrency: read again
//   and retry; or a poisoned communicator kFailedPrecondition  the call is right but not in this
//   state (an older round, a deleting object) kOutOfRange          a watch or page position that
//   has expired (HTTP 410): list again kResourceExhausted   disk full, out of memory, a queue over
//   its bound kDeadlineExceeded    the wait was bounded and the bound passed kUnavailable the other
//   side is away; worth a retry with back-off kDataLoss            a checksum did not match, a file
//   is torn kUnimplemented       not built in, or a manifest asks for something that this version
//   refuses kInternal            a bug of ours
//
// Debian's abseil has a string_view of its own: write `std::string(status.message())`, or
// Message(status).
#ifndef RINGMASTER_COMMON_STATUS_H_
#define RINGMASTER_COMMON_STATUS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ringmaster {

// The status's message as a std::string.
std::string Message(const absl::Status& status);

// The same code with `context` and ": " before the message. An OK status stays OK.
absl::Status Annotate(const absl::Status& status, const std::string& context);

// The exit code (common/contract.h) that a program ends with on this status.
int ExitCodeFor(const absl::Status& status);

// A status from errno: ENOENT is kNotFound, ENOSPC and EDQUOT kResourceExhausted, EEXIST
// kAlreadyExists, ETIMEDOUT kDeadlineExceeded, ECONNREFUSED, ECONNRESET and EPIPE kUnavailable, the
// rest kInternal. The message is
// "`what`: strerror".
absl::Status ErrnoStatus(int error_number, const std::string& what);

}  // namespace ringmaster

#define RM_CONCAT_INNER_(a, b) a##b
#define RM_CONCAT_(a, b) RM_CONCAT_INNER_(a, b)

// Returns the status from the enclosing function unless it is OK.
#define RM_RETURN_IF_ERROR(expr)                                               \
  do {                                                                         \
    if (absl::Status rm_status_ = (expr); !rm_status_.ok()) return rm_status_; \
  } while (false)

// RM_ASSIGN_OR_RETURN(auto x, Make()): x takes the value, or the enclosing function returns the
// status.
#define RM_ASSIGN_OR_RETURN(lhs, expr) \
  RM_ASSIGN_OR_RETURN_(RM_CONCAT_(rm_status_or_, __LINE__), lhs, expr)
#define RM_ASSIGN_OR_RETURN_(var, lhs, expr) \
  auto var = (expr);                         \
  if (!var.ok()) return var.status();        \
  lhs = std::move(*var)

#endif  // RINGMASTER_COMMON_STATUS_H_
