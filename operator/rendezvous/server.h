// The rendezvous as the operator and `ringmaster run` start it: the registry behind a gRPC service
// on a port.
//
//   RM_ASSIGN_OR_RETURN(std::string secret, LoadOrCreateSecret(folder + "/rendezvous.key"));
//   ObjectPodVerifier verifier([&](const kube::ObjectKey& pod) { return pods.Get(pod); });
//   RM_ASSIGN_OR_RETURN(auto server, Server::Start({.address = "127.0.0.1:0", .secret = secret},
//                                                  SystemClock(), verifier,
//                                                  [&](const kube::ObjectKey& job) {
//                                                  queue.Add(job); }));
//   server->address();   // "127.0.0.1:40123": for the workers' RINGMASTER_RENDEZVOUS
//   server->link();      // for the manager
//
// Thread safety: link() may be used from any thread until the server goes. The destructor ends all
// streams and waits for them.
#ifndef RINGMASTER_OPERATOR_RENDEZVOUS_SERVER_H_
#define RINGMASTER_OPERATOR_RENDEZVOUS_SERVER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/certificate.h"
#include "common/clock.h"
#include "operator/rendezvous/registry.h"

namespace ringmaster::rendezvous {

class Server {
 public:
  struct Options {
    std::string address;  // numeric host:port to listen at, ":port" for every address of the
                          // machine; port 0 takes a free one
    std::string secret;  // round_key.h; workers of a round that outlives this process need the same
    Timing timing;
    kube::TokenReviewer* reviewer = nullptr;  // see Registry; must outlive the server
    std::optional<Certificate> certificate;   // speaks TLS alone, with this; without: plain text
    bool stand_by = false;                    // begins as after StandBy("")
  };

  // `clock` decides what is silent; it and `verifier` must outlive the server. `changed` is called
  // from many threads. kUnavailable when the port is taken, kInvalidArgument for a bad address.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      Options options, const Clock& clock, PodVerifier& verifier,
      std::function<void(const kube::ObjectKey& job)> changed);
  virtual ~Server() = default;

  virtual int port() const = 0;
  // The host of Options::address with the port that was taken.
  virtual std::string address() const = 0;
  virtual manager::WorkerLink& link() = 0;

  // See Registry: an operator that does not lead refuses workers and names the one that does.
  virtual void StandBy(const std::string& leader) = 0;
  virtual void Activate() = 0;
};

}  // namespace ringmaster::rendezvous

#endif  // RINGMASTER_OPERATOR_RENDEZVOUS_SERVER_H_
