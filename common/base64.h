// Base64 (RFC 4648, the standard alphabet), as Kubernetes puts bytes into YAML and JSON. Pure.
#ifndef RINGMASTER_COMMON_BASE64_H_
#define RINGMASTER_COMMON_BASE64_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace ringmaster {

// The bytes. Line ends are skipped; padding may be missing. kInvalidArgument for any other
// character and for a length that no bytes have; the message does not repeat the text, which may be
// a secret.
absl::StatusOr<std::string> DecodeBase64(std::string_view text);

// With padding, on one line.
std::string EncodeBase64(std::string_view bytes);

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_BASE64_H_
