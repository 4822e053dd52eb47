#include "runtime/collectives/transport/tcp/listener.h"

#include <utility>

#include "runtime/collectives/transport/tcp/acceptor.h"

namespace ringmaster::collectives::tcp {

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(const std::string& address) {
  RM_ASSIGN_OR_RETURN(const SocketAddress wanted, ParseAddress(address));
  RM_ASSIGN_OR_RETURN(UniqueFd fd, ListenAt(wanted));
  RM_ASSIGN_OR_RETURN(const SocketAddress actual, LocalAddress(fd.get()));
  auto acceptor = std::make_unique<Acceptor>(std::move(fd), actual);
  return std::unique_ptr<Listener>(new Listener(FormatAddress(actual), std::move(acceptor)));
}

Listener::Listener(std::string address, std::unique_ptr<Acceptor> acceptor)
    : address_(std::move(address)), acceptor_(std::move(acceptor)) {}

Listener::~Listener() = default;

}  // namespace ringmaster::collectives::tcp
