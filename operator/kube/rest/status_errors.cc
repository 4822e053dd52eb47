#include "operator/kube/rest/status_errors.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "operator/kube/errors.h"
#include "operator/kube/object.h"

namespace ringmaster::kube::rest {
namespace {

constexpr std::size_t kQuotedBytes = 200;
constexpr std::int64_t kLongestRetryAfter = 3600;

struct Meaning {
  std::string_view reason;
  absl::StatusCode code;
};

// metav1.StatusReason. "Conflict" and "AlreadyExists" share a code, so the reason comes first.
constexpr std::array kReasons = {
    Meaning{kReasonUnauthorized, absl::StatusCode::kUnauthenticated},
    Meaning{kReasonForbidden, absl::StatusCode::kPermissionDenied},
    Meaning{kReasonNotFound, absl::StatusCode::kNotFound},
    Meaning{kReasonAlreadyExists, absl::StatusCode::kAlreadyExists},
    Meaning{kReasonConflict, absl::StatusCode::kAborted},
    Meaning{"Gone", absl::StatusCode::kOutOfRange},
    Meaning{kReasonExpired, absl::StatusCode::kOutOfRange},
    Meaning{kReasonInvalid, absl::StatusCode::kInvalidArgument},
    Meaning{kReasonBadRequest, absl::StatusCode::kInvalidArgument},
    Meaning{"MethodNotAllowed", absl::StatusCode::kInvalidArgument},
    Meaning{"NotAcceptable", absl::StatusCode::kInvalidArgument},
    Meaning{"RequestEntityTooLarge", absl::StatusCode::kInvalidArgument},
    Meaning{"UnsupportedMediaType", absl::StatusCode::kInvalidArgument},
    Meaning{kReasonTooManyRequests, absl::StatusCode::kResourceExhausted},
    Meaning{"ServerTimeout", absl::StatusCode::kUnavailable},
    Meaning{kReasonTimeout, absl::StatusCode::kDeadlineExceeded},
    Meaning{kReasonServiceUnavailable, absl::StatusCode::kUnavailable},
    // What the server could not do may work the next time, and may have been done.
    Meaning{kReasonInternalError, absl::StatusCode::kUnavailable},
};

std::string_view ReasonOfCode(int http_code) {
  switch (http_code) {
    case 400:
      return kReasonBadRequest;
    case 401:
      return kReasonUnauthorized;
    case 403:
      return kReasonForbidden;
    case 404:
      return kReasonNotFound;
    case 405:
      return "MethodNotAllowed";
    case 406:
      return "NotAcceptable";
    case 408:
      return kReasonTimeout;
    case 409:
      return kReasonConflict;
    case 410:
      return kReasonExpired;
    case 413:
      return "RequestEntityTooLarge";
    case 415:
      return "UnsupportedMediaType";
    case 422:
      return kReasonInvalid;
    case 429:
      return kReasonTooManyRequests;
    case 502:
    case 503:
      return kReasonServiceUnavailable;
    case 504:
      return kReasonTimeout;
    default:
      return http_code >= 500 ? kReasonInternalError : kReasonBadRequest;
  }
}

absl::Status Make(std::string_view reason, int http_code, const std::string& message) {
  // etcd's quota; the server has no reason of its own for it.
  if (message.find("database space exceeded") != std::string::npos) {
    return absl::ResourceExhaustedError(message);
  }
  for (const Meaning& meaning : kReasons) {
    if (meaning.reason != reason) continue;
    return WithReason(absl::Status(meaning.code, message),
                      reason == "Gone" ? kReasonExpired : reason);
  }
  return http_code == 0 ? WithReason(absl::UnavailableError(message), reason)
                        : Make(ReasonOfCode(http_code), 0, message);
}

std::string Quote(std::string_view body) {
  std::string quoted(body.substr(0, kQuotedBytes));
  std::replace_if(
      quoted.begin(), quoted.end(), [](unsigned char c) { return !std::isprint(c); }, ' ');
  while (!quoted.empty() && quoted.back() == ' ') quoted.pop_back();
  return quoted.empty() ? "without saying why" : quoted;
}

// Whoever says so: who we are is not known or may not, or later it may go well.
bool MeansTheSameOfAnyone(int http_code) {
  return http_code == 401 || http_code == 403 || http_code == 408 || http_code == 429 ||
         http_code >= 500;
}

absl::Status NotOfTheServer(int http_code, std::string_view body, std::string_view what) {
  return absl::UnavailableError(fmt::format(
      "{}: not the API server but something before it answered {}{}: {}; is the address the API "
      "server's own?",
      what, http_code, http_code < 400 ? ", a redirection" : "", Quote(body)));
}

std::optional<Json> ParseStatus(std::string_view body) {
  Json status = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (status.is_discarded() || FindString(status, {"kind"}) != "Status") return std::nullopt;
  return status;
}

}  // namespace

absl::Status ErrorOfStatus(const Json& status, std::string_view what) {
  const int code = static_cast<int>(FindInt(status, {"code"}).value_or(500));
  std::string message = FindString(status, {"message"});
  if (message.empty()) message = fmt::format("{}: the server answered {}", what, code);
  return Make(FindString(status, {"reason"}), code == 0 ? 500 : code, message);
}

absl::Status ErrorOf(int http_code, std::string_view body, bool is_audited, std::string_view what) {
  if (const auto status = ParseStatus(body)) {
    Json with_code = *status;
    if (!FindInt(with_code, {"code"})) with_code["code"] = http_code;
    return ErrorOfStatus(with_code, what);
  }
  if (!is_audited && !MeansTheSameOfAnyone(http_code)) return NotOfTheServer(http_code, body, what);
  if (http_code == 404) {
    return absl::NotFoundError(fmt::format(
        "{}: the server does not serve this path; is the CustomResourceDefinition installed?",
        what));
  }
  if (http_code < 400) {
    return BadRequest(
        fmt::format("{}: the server answered {}, a redirection; give the API server's own address",
                    what, http_code));
  }
  return Make(ReasonOfCode(http_code), 0,
              fmt::format("{}: the server answered {}: {}", what, http_code, Quote(body)));
}

std::optional<std::chrono::seconds> RetryAfter(std::string_view header, std::string_view body) {
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), seconds);
  if (header.empty() || error != std::errc() || end != header.data() + header.size()) {
    const auto status = body.empty() ? std::nullopt : ParseStatus(body);
    if (!status) return std::nullopt;
    seconds = FindInt(*status, {"details", "retryAfterSeconds"}).value_or(0);
    if (seconds <= 0) return std::nullopt;
  }
  return std::chrono::seconds(std::clamp<std::int64_t>(seconds, 0, kLongestRetryAfter));
}

}  // namespace ringmaster::kube::rest
