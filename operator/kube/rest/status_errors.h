// From an HTTP answer to the errors of client.h.
//
// The server says what went wrong in a Status object ({"kind": "Status", "reason": "Conflict",
// ...}); its reason decides, and is kept (errors.h). It answers without one, too: for a path that
// it does not serve, or when it is overloaded. Then the HTTP code decides, but only where the
// answer is the server's own: a load balancer's 404 does not mean that an object is gone, nor its
// 400 that the object is wrong. Pure; any bytes are a valid input.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_STATUS_ERRORS_H_
#define RINGMASTER_OPERATOR_KUBE_REST_STATUS_ERRORS_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "operator/kube/types.h"

namespace ringmaster::kube::rest {

// The API server puts it on each of its answers, whatever they are.
inline constexpr char kAuditIdHeader[] = "Audit-Id";

// The error that an answer with this HTTP code (300 or above) means. `is_audited`: it has the
// header above. Without that and without a Status it is kUnavailable, unless its code says the same
// whoever stands in the way: 401, 403, 408, 429, and from 500. `what` is the request, for the
// message where the server gives none: "GET /api/v1/pods".
absl::Status ErrorOf(int http_code, std::string_view body, bool is_audited, std::string_view what);

// The error that a Status object means: the object of a watch's ERROR event.
absl::Status ErrorOfStatus(const Json& status, std::string_view what);

// When the server asks to be left alone: the Retry-After header, in seconds, or
// details.retryAfterSeconds of the Status in the body. Nothing when it does not say.
std::optional<std::chrono::seconds> RetryAfter(std::string_view header, std::string_view body);

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_STATUS_ERRORS_H_
