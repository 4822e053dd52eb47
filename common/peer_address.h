// Which of its addresses a worker uses for its peers: the pod's own, or, where a job's pods have
// several networks, the one that RINGMASTER_PEER_INTERFACE chooses. Whoever listens for peers asks
// here, and tells the rendezvous, which hands the address on; how the operator, metrics and health
// pages are reached does not depend on it.
//
// Thread-safe.
#ifndef RINGMASTER_COMMON_PEER_ADDRESS_H_
#define RINGMASTER_COMMON_PEER_ADDRESS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/network_interfaces.h"

namespace ringmaster {

// The address that `wanted` chooses, numeric: names of interfaces (net1) and subnets (10.2.0.0/16,
// fd00:2::/64), joined by commas, of which the first counts that has an address on an interface
// that is up. Where it has several the pod's own goes first, then those of its family, then the
// system's order. Pure. kInvalidArgument: no such list; kNotFound: none of them has an address
// here, with why not and with the addresses that there are.
absl::StatusOr<std::string> ChooseAddress(std::string_view wanted, const std::string& pod_ip,
                                          const std::vector<NetworkInterface>& interfaces);

// Whether `wanted` is such a list. Pure. kInvalidArgument.
absl::Status CheckNetworks(std::string_view wanted);

// What RINGMASTER_PEER_INTERFACE chooses on this machine; `pod_ip` where it is not set. Fails as
// the above do, naming the variable.
absl::StatusOr<std::string> PeerAddress(const std::string& pod_ip);

}  // namespace ringmaster

#endif  // RINGMASTER_COMMON_PEER_ADDRESS_H_
