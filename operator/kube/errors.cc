#include "operator/kube/errors.h"

#include <fmt/format.h>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"

namespace ringmaster::kube {
namespace {

constexpr char kReasonPayload[] = "ringmaster.dev/reason";

std::string_view UsualReason(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return "";
    case absl::StatusCode::kNotFound:
      return kReasonNotFound;
    case absl::StatusCode::kAlreadyExists:
      return kReasonAlreadyExists;
    case absl::StatusCode::kAborted:
      return kReasonConflict;
    case absl::StatusCode::kInvalidArgument:
      return kReasonInvalid;
    case absl::StatusCode::kFailedPrecondition:
      return kReasonBadRequest;
    case absl::StatusCode::kOutOfRange:
      return kReasonExpired;
    case absl::StatusCode::kPermissionDenied:
      return kReasonForbidden;
    case absl::StatusCode::kUnauthenticated:
      return kReasonUnauthorized;
    case absl::StatusCode::kResourceExhausted:
      return kReasonTooManyRequests;
    case absl::StatusCode::kDeadlineExceeded:
      return kReasonTimeout;
    case absl::StatusCode::kUnavailable:
      return kReasonServiceUnavailable;
    default:
      return kReasonInternalError;
  }
}

}  // namespace

std::string Reason(const absl::Status& status) {
  if (const auto payload = status.GetPayload(kReasonPayload)) return std::string(*payload);
  return std::string(UsualReason(status.code()));
}

absl::Status WithReason(absl::Status status, std::string_view reason) {
  status.SetPayload(kReasonPayload, absl::Cord(std::string(reason)));
  return status;
}

absl::Status NotFound(const ResourceType& type, const ObjectKey& key) {
  return absl::NotFoundError(fmt::format("{} \"{}\" not found", type.Qualified(), key.name));
}

absl::Status AlreadyExists(const ResourceType& type, const ObjectKey& key) {
  return absl::AlreadyExistsError(
      fmt::format("{} \"{}\" already exists", type.Qualified(), key.name));
}

absl::Status Conflict(const ResourceType& type, const ObjectKey& key, std::string_view why) {
  return absl::AbortedError(fmt::format("Operation cannot be fulfilled on {} \"{}\": {}",
                                        type.Qualified(), key.name, why));
}

absl::Status Invalid(const ResourceType& type, std::string_view name, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{} \"{}\" is invalid: {}", type.kind, name, why));
}

absl::Status BadRequest(std::string_view why) {
  return WithReason(absl::InvalidArgumentError(std::string(why)), kReasonBadRequest);
}

absl::Status Expired(std::string_view why) {
  return absl::OutOfRangeError(std::string(why));
}

bool IsDeniedByAdmission(const absl::Status& status) {
  return absl::StrContains(status.message(), "admission webhook \"") ||
         absl::StrContains(status.message(), "ValidatingAdmissionPolicy '");
}

}  // namespace ringmaster::kube
