// The address of an API server, taken apart. Pure.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_SERVER_ADDRESS_H_
#define RINGMASTER_OPERATOR_KUBE_REST_SERVER_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace ringmaster::kube::rest {

struct ServerAddress {
  bool tls = true;
  std::string host;  // an IPv6 address without its brackets
  int port = 0;      // 443 or 80 where none is given
  std::string path;  // "" or "/clusters/a", without a slash at its end

  std::string HostHeader() const;  // "[fd00::1]:6443"
};

// "https://[fd00::1]:6443/clusters/a". kInvalidArgument for anything that is not http or https, has
// no host, a port out of range, a user, a query or a fragment.
absl::StatusOr<ServerAddress> ParseServerAddress(std::string_view text);

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_SERVER_ADDRESS_H_
