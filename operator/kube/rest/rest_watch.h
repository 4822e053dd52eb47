// A watch of the API server as kube::WatchStream: one JSON object a line, {"type", "object"}.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_REST_WATCH_H_
#define RINGMASTER_OPERATOR_KUBE_REST_REST_WATCH_H_

#include <string>

#include "absl/status/status.h"
#include "operator/kube/client.h"
#include "operator/kube/rest/caller.h"
#include "operator/kube/rest/read_json.h"

namespace ringmaster::kube::rest {

class RestWatch : public WatchStream {
 public:
  // `what` is for messages: "watch of pods". The watch is cut at `cut`.
  RestWatch(OpenStream stream, std::string what, SteadyTime cut, Reading reading);

  absl::StatusOr<WatchEvent> Next(std::chrono::milliseconds timeout) override;
  void Stop() override;

 private:
  absl::StatusOr<WatchEvent> Parse(const std::string& line) const;
  absl::Status End(absl::Status status);

  const OpenStream stream_;
  const std::string what_;
  const SteadyTime cut_;
  const Reading reading_;
  absl::Status end_;  // once it is over
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_REST_WATCH_H_
