// What a probe, or a person, may ask of any worker, whatever its program is: GET /healthz and
// /readyz at port 7474 of the pod's address.
//
//   /healthz  200 while the launcher's loop turns; 503 once it has stood still
//   /readyz   200 while `ready` says OK, else 503 with its words
//
// The operator puts no probes into pods: its heartbeats see more than a kubelet can, and name the
// cause, where a kubelet would only kill. The pages are for templates that want them, and for eyes.
//
// Belongs to the event loop's thread; the pages are served by another.
#ifndef RINGMASTER_LAUNCHER_HEALTH_H_
#define RINGMASTER_LAUNCHER_HEALTH_H_

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "common/web_server.h"
#include "launcher/event_loop.h"

namespace ringmaster::launcher {

inline constexpr int kHealthPort = 7474;

class Health {
 public:
  struct Options {
    std::string address;                               // "host:port"
    Duration look_every = std::chrono::seconds(1);     // at `ready`
    Duration longest_turn = std::chrono::seconds(10);  // of a loop that is well
  };

  // `loop` must outlive it. A worker without these pages works: where they cannot be served, that
  // is logged, and nothing more. `ready` is called on the loop's thread.
  Health(EventLoop& loop, Options options, std::function<absl::Status()> ready);
  ~Health();
  Health(const Health&) = delete;
  Health& operator=(const Health&) = delete;

  int port() const { return server_ == nullptr ? 0 : server_->port(); }

 private:
  void Look();
  absl::Status Alive() const;
  absl::Status Ready() const;

  EventLoop& loop_;
  const Options options_;
  const std::function<absl::Status()> ready_;
  EventLoop::TimerId timer_ = 0;
  mutable std::mutex mutex_;
  SteadyTime looked_;    // guarded by mutex_
  absl::Status status_;  // guarded by mutex_
  std::unique_ptr<WebServer> server_;
};

}  // namespace ringmaster::launcher

#endif  // RINGMASTER_LAUNCHER_HEALTH_H_
