// The network interfaces that a process sees, and their addresses.
//
// Thread-safe.
#ifndef RINGMASTER_COMMON_NETWORK_INTERFACES_H_
#define RINGMASTER_COMMON_NETWORK_INTERFACES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ringmaster {

struct NetworkInterface {
  std::string name;
  bool up = false;  // as it is administered; whether its cable carries something is another matter
  std::vector<std::string> addresses;  // numeric, without a prefix, in the system's order
};

// Those of this process's network namespace, in the system's order. Link-local addresses of IPv6
// are left out: a peer could not dial one without a zone, which is a name of the peer's own.
// Fails with the system's error.
absl::StatusOr<std::vector<NetworkInterface>> ReadNetworkInterfaces();

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_NETWORK_INTERFACES_H_
