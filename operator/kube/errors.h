// The API server's reasons, carried by absl::Status.
//
// The code alone says what to do (client.h); the reason says which of the server's errors it was,
// for messages, metrics and tests. A status made elsewhere has the reason that its code usually
// means.
#ifndef RINGMASTER_OPERATOR_KUBE_ERRORS_H_
#define RINGMASTER_OPERATOR_KUBE_ERRORS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "operator/kube/types.h"

namespace ringmaster::kube {

inline constexpr char kReasonNotFound[] = "NotFound";
inline constexpr char kReasonAlreadyExists[] = "AlreadyExists";
inline constexpr char kReasonConflict[] = "Conflict";
inline constexpr char kReasonInvalid[] = "Invalid";        // validation refused the object
inline constexpr char kReasonBadRequest[] = "BadRequest";  // the request itself is malformed
inline constexpr char kReasonExpired[] = "Expired";
inline constexpr char kReasonForbidden[] = "Forbidden";
inline constexpr char kReasonUnauthorized[] = "Unauthorized";
inline constexpr char kReasonTooManyRequests[] = "TooManyRequests";
inline constexpr char kReasonTimeout[] = "Timeout";
inline constexpr char kReasonServiceUnavailable[] = "ServiceUnavailable";
inline constexpr char kReasonInternalError[] = "InternalError";

// The reason of a status; "" when it is OK.
std::string Reason(const absl::Status& status);

// The status with this reason instead of its code's usual one.
absl::Status WithReason(absl::Status status, std::string_view reason);

// pods "a" not found
absl::Status NotFound(const ResourceType& type, const ObjectKey& key);
// pods "a" already exists
absl::Status AlreadyExists(const ResourceType& type, const ObjectKey& key);
// Operation cannot be fulfilled on pods "a": `why`
absl::Status Conflict(const ResourceType& type, const ObjectKey& key, std::string_view why);
// Pod "a" is invalid: `why`
absl::Status Invalid(const ResourceType& type, std::string_view name, std::string_view why);
absl::Status BadRequest(std::string_view why);
absl::Status Expired(std::string_view why);

// Whether admission has refused the object (a webhook, a policy), which the code need not tell from
// an object that is invalid: it is the API server's words that do.
bool IsDeniedByAdmission(const absl::Status& status);

inline bool IsNotFound(const absl::Status& status) {
  return status.code() == absl::StatusCode::kNotFound;
}
inline bool IsConflict(const absl::Status& status) {
  return status.code() == absl::StatusCode::kAborted;
}
inline bool IsAlreadyExists(const absl::Status& status) {
  return status.code() == absl::StatusCode::kAlreadyExists;
}
inline bool IsExpired(const absl::Status& status) {
  return status.code() == absl::StatusCode::kOutOfRange;
}

}  // namespace ringmaster::kube

#endif  // RINGMASTER_OPERATOR_KUBE_ERRORS_H_
