// The clients of one operator for one API server: three, so that a flood of one kind of call does
// not hold up another. A renewal of the lease must not wait in the queue of a thousand pods.
#ifndef RINGMASTER_OPERATOR_CLUSTER_CONNECTION_H_
#define RINGMASTER_OPERATOR_CLUSTER_CONNECTION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "operator/kube/rest/rest_client.h"
#include "operator/kube/rest/server_clock.h"

namespace ringmaster::cluster {

struct ConnectionOptions {
  kube::rest::ConfigSource source;
  double qps = 500;  // of the work; see RestOptions
  int burst = 1000;
  Duration renew_deadline = std::chrono::seconds(10);  // of the leader election
};

struct Connection {
  std::unique_ptr<kube::rest::ServerClock> clock;  // all of them learn from the server's answers
  std::unique_ptr<kube::rest::RestClient> work;
  std::unique_ptr<kube::rest::RestClient> election;
  std::unique_ptr<kube::rest::RestClient> review;
  std::string ns;      // the pod's own namespace, or the context's
  std::string origin;  // where the configuration comes from, for messages
};

// Reads the configuration and makes the clients; sends nothing. Errors of rest/config.h and of
// RestClient::Connect.
absl::StatusOr<Connection> Connect(const ConnectionOptions& options);

}  // namespace ringmaster::cluster

#endif  // RINGMASTER_OPERATOR_CLUSTER_CONNECTION_H_
