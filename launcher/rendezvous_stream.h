// One stream to the operator: gRPC's callbacks, brought onto the event loop's thread.
#ifndef RINGMASTER_LAUNCHER_RENDEZVOUS_STREAM_H_
#define RINGMASTER_LAUNCHER_RENDEZVOUS_STREAM_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "launcher/event_loop.h"
#include "ringmaster/rendezvous/v1/rendezvous.pb.h"

namespace ringmaster::launcher {

class RendezvousStream {
 public:
  // Called on the loop's thread, never from within a call to the stream, and not after it is gone.
  struct Handlers {
    std::function<void()> connected;  // at most once, and before it nothing is to be written
    std::function<void(const rendezvous::v1::ToWorker&)> message;
    std::function<void()> written;                   // the next Write may come
    std::function<void(const absl::Status&)> ended;  // with the operator's status; the last call
  };

  // Begins to dial "host:port"; a failure comes as `ended`, within seconds where the name is found
  // but nobody answers. With `ca_pem` the stream is TLS and the
  // operator's certificate must be that authority's, for contract::kRendezvousServerName. `loop`
  // must outlive the stream.
  static std::unique_ptr<RendezvousStream> Dial(EventLoop& loop, const std::string& address,
                                                const std::string& ca_pem, Handlers handlers);
  // Breaks the stream off and waits for gRPC to let go of it, which needs no network.
  virtual ~RendezvousStream() = default;

  // One at a time: the next only after `written`.
  virtual void Write(const rendezvous::v1::FromWorker& message) = 0;
  // Nothing more will be written. The operator then ends the stream, with OK once it has read all.
  virtual void WritesDone() = 0;
};

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_RENDEZVOUS_STREAM_H_
