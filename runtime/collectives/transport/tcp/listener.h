// Where a worker's peers connect: opened once per process, it lives across rounds.
//
// One thread accepts connections and runs the handshake (transport/handshake.h) for each without
// blocking, then hands the socket to the transport of the round that the peer named. Whoever does
// not belong is refused and disturbs nothing: garbage bytes, a peer that stalls inside the
// handshake, an older round, an unknown pod UID, a wrong key. Each refusal is logged once per
// source address and kind. A peer of a round that this worker has not opened yet is told to try
// again: rounds reach the workers at slightly different times.
//
// Thread-safe.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_LISTENER_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_LISTENER_H_

#include <memory>
#include <string>

#include "common/status.h"

namespace ringmaster::collectives::tcp {

class Acceptor;

class Listener {
 public:
  // Listens on a numeric "address:port" ("127.3.0.1:0", "[::1]:7473"); port 0 takes a free one.
  // Starts the accepting thread. kInvalidArgument: not an address; else the error of the system,
  // with the address in it.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(const std::string& address);

  // Stops the thread and closes the port. Every communicator of this listener must be gone.
  ~Listener();

  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // The address with the real port, as peers must dial it.
  const std::string& address() const { return address_; }

  // For the transport: the rounds that are open, and those that are over.
  Acceptor& acceptor() { return *acceptor_; }

 private:
  Listener(std::string address, std::unique_ptr<Acceptor> acceptor);

  const std::string address_;
  const std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace ringmaster::collectives::tcp

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_LISTENER_H_
