// The accepting thread of a Listener: it runs the acceptor's side of the handshake for every
// connection at once, without blocking on any, and hands those that pass to the round that is open.
// Thread-safe.
#ifndef RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_ACCEPTOR_H_
#define RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_ACCEPTOR_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <poll.h>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/file.h"
#include "runtime/collectives/transport/handshake.h"
#include "runtime/collectives/transport/tcp/socket.h"
#include "runtime/collectives/transport/tcp/tls_stream.h"

namespace ringmaster::collectives::tcp {

// An open round, as the acceptor sees it.
class RoundSink {
 public:
  virtual ~RoundSink() = default;
  virtual const Membership& membership() const = 0;
  virtual Encryption encryption() const = 0;
  // Takes a connection from a rank that has proved who it is; false where that rank has as many as
  // it may have. Called on the accepting thread; must not block or call the acceptor.
  virtual bool Deliver(int rank, Connection connection) = 0;
};

struct RefusalCounts {
  uint64_t refused = 0;  // connections that were turned away, those told to try again not counted
  uint64_t logged = 0;   // lines written about them
};

class Acceptor {
 public:
  Acceptor(UniqueFd listening, SocketAddress address);
  ~Acceptor();  // no round may be open

  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // From here on only peers of this round are taken. kFailedPrecondition: this or a later one was
  // opened before.
  absl::Status OpenRound(RoundSink* sink);

  // After this returns `sink` is not called any more.
  void CloseRound(RoundSink* sink);

  const SocketAddress& address() const { return address_; }
  RefusalCounts refusals() const;

 private:
  // A connection inside the handshake.
  struct Guest {
    UniqueFd fd;
    std::string source;
    SteadyTime deadline;
    size_t done = 0;  // bytes of the record being read
    bool proving = false;
    HelloBytes hello_bytes;
    Hello hello;
    Challenge challenge{};
    Sha256Digest proof{};
    std::unique_ptr<TlsStream> tls;  // from the verdict on, where both want it
  };
  using Guests = std::list<Guest>;

  void Loop();
  int PollTimeoutMs() const;
  void AcceptAll();
  // These return false when the guest is to be let go.
  bool Advance(Guest& guest);
  bool Greet(Guest& guest);
  bool CheckProof(Guest& guest);
  bool Encrypt(Guest& guest);
  Verdict Judge(Guest& guest, Answer* answer);
  void Refuse(const Guest& guest, const std::string& why);

  const UniqueFd listening_;
  const SocketAddress address_;
  WakeUp wake_;

  mutable std::mutex mutex_;
  bool stopping_ = false;
  RoundSink* sink_ = nullptr;
  uint64_t newest_round_ = 0;
  RefusalCounts refusals_;

  // Only the accepting thread uses these.
  Guests guests_;
  SteadyTime accept_again_{};  // set into the future while there are no descriptors left
  std::set<std::pair<std::string, std::string>> logged_;  // source and reason
  std::thread thread_;
};

}  // namespace ringmaster::collectives::tcp

#endif  // RINGMASTER_RUNTIME_COLLECTIVES_TRANSPORT_TCP_ACCEPTOR_H_
