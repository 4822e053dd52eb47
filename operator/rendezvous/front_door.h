// The rendezvous port's listener. It reads the first bytes of every connection and passes on only
// those that speak HTTP/2, or TLS where that is asked for: whatever else comes to the port is
// closed and logged once per source, before gRPC, which drops it silently, has seen it. A
// connection that says nothing is closed after a time-out, and the number of those that have not
// spoken yet is bounded. One address has a share of that number: where it opens more, the one of
// its own that has been silent for longest makes room.
#ifndef RINGMASTER_OPERATOR_RENDEZVOUS_FRONT_DOOR_H_
#define RINGMASTER_OPERATOR_RENDEZVOUS_FRONT_DOOR_H_

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/file.h"
#include "operator/rendezvous/source_log.h"

namespace ringmaster::rendezvous {

class FrontDoor {
 public:
  // A connection, and the bytes that were read from it. Called on the listener's thread.
  using Admit = std::function<void(UniqueFd connection, const std::string& read)>;

  enum class Language { kHttp2, kTls };

  // Listens at "host:port", the host numeric, ":port" for all addresses of both families; port 0
  // takes a free one. kUnavailable when the port is taken, kInvalidArgument when the address is
  // none.
  static absl::StatusOr<std::unique_ptr<FrontDoor>> Open(const std::string& address,
                                                         Language language, Duration patience,
                                                         Admit admit);
  // Closes the port and the connections that were not passed on.
  ~FrontDoor();

  int port() const { return port_; }

 private:
  struct Guest {
    UniqueFd fd;
    std::string source;
    std::string read;
    SteadyTime until;
  };
  enum class Verdict { kWait, kAdmit, kRefuse, kGone };

  FrontDoor(UniqueFd listener, UniqueFd wake, int port, Language language, Duration patience,
            Admit admit);
  void Run();
  void AcceptAll();
  void MakeRoomFor(const std::string& source);
  Verdict Listen(Guest& guest);
  void Settle(Guest& guest, Verdict verdict);

  const UniqueFd listener_;
  const UniqueFd wake_;  // an eventfd: written to end the thread
  const int port_;
  const std::string_view opening_;  // what a guest says first
  const Duration patience_;
  const Admit admit_;
  SourceLog refusals_;
  std::list<Guest> guests_;  // the thread's own
  bool starved_ = false;     // the thread's own: no descriptor is left to accept with
  std::thread thread_;
};

}  // namespace ringmaster::rendezvous

#endif  // RINGMASTER_OPERATOR_RENDEZVOUS_FRONT_DOOR_H_
