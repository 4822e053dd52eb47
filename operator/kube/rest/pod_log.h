// The log of one container, as the API server hands it on from the pod's kubelet.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_POD_LOG_H_
#define RINGMASTER_OPERATOR_KUBE_REST_POD_LOG_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace ringmaster::kube::rest {

struct LogOptions {
  std::string container;    // may be empty where the pod has only one
  bool follow = false;      // go on until the container has ended
  bool timestamps = false;  // each line begins with when it was written, RFC 3339, and a space
  std::optional<int> tail_lines;  // only the last ones
  std::string since_time;         // RFC 3339; to the second, so older lines of that second come too
};

// Lines as they come. For one reader. Destroying it closes its connection. It outlives the client
// that opened it.
//
// Memory: a reader that lags stops the socket; a line beyond RestOptions::max_event_bytes is
// refused.
class LogStream {
 public:
  virtual ~LogStream() = default;

  // The next line without its end; nothing once the log is over and every line was handed out.
  // kDeadlineExceeded: none came in time, call again. kOutOfRange: the line is too long.
  // kUnavailable: the connection broke, or nothing was heard for RestOptions::watch_idle_timeout;
  // more may have been written since. After any error but kDeadlineExceeded it is over.
  virtual absl::StatusOr<std::optional<std::string>> Next(std::chrono::milliseconds timeout) = 0;
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_POD_LOG_H_
