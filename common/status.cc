#include "common/status.h"

#include <cerrno>
#include <cstring>

#include "common/contract.h"

namespace ringmaster {

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

absl::Status Annotate(const absl::Status& status, const std::string& context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), context + ": " + Message(status));
}

int ExitCodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return contract::kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
      return contract::kExitBadConfig;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
      return contract::kExitBadData;
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return contract::kExitPeerLost;
    case absl::StatusCode::kResourceExhausted:
      return contract::kExitNoResource;
    case absl::StatusCode::kInternal:
      return contract::kExitInternal;
    default:
      return contract::kExitFailure;
  }
}

absl::Status ErrnoStatus(int error_number, const std::string& what) {
  const std::string message = what + ": " + std::strerror(error_number);
  switch (error_number) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EEXIST:
      return absl::AlreadyExistsError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case EISDIR:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return absl::InvalidArgumentError(message);
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(message);
    case ETIMEDOUT:
      return absl::DeadlineExceededError(message);
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
      return absl::UnavailableError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace ringmaster
