// Where a server listens, as people write it and as programs tell it one another. Pure.
#ifndef RINGMASTER_COMMON_HOST_PORT_H_
#define RINGMASTER_COMMON_HOST_PORT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace ringmaster {

struct HostAndPort {
  std::string host;  // without the brackets of an IPv6 address
  int port = 0;
};

// "127.0.0.1:7470", "[::1]:7470". kInvalidArgument with an example for anything else.
absl::StatusOr<HostAndPort> ParseHostPort(std::string_view text);

// The way back: an IPv6 address gets its brackets, unless it has them.
std::string JoinHostPort(std::string_view host, int port);

// Whether it is an address that can be dialled without looking up a name: "10.0.0.7:7473",
// "[fd00::7]:7473". Such a text is shorter than 64 bytes.
bool IsNumericHostPort(std::string_view text);

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_HOST_PORT_H_
