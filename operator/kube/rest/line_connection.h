// A request whose answer is read line by line as it comes, over a connection of its own: watches
// and logs.
//
// A reader that lags stops the socket: nothing is read while a whole line waits to be taken.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_LINE_CONNECTION_H_
#define RINGMASTER_OPERATOR_KUBE_REST_LINE_CONNECTION_H_

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "operator/kube/rest/http_connection.h"
#include "operator/kube/rest/transport.h"

namespace ringmaster::kube::rest {

// For one reader, which calls everything but Stop. Open and Next block, until their deadlines at
// most.
class LineConnection {
 public:
  struct Bounds {
    std::chrono::milliseconds idle{};  // for each read of a line
    std::size_t line_bytes = 0;
    std::size_t body_bytes = 0;  // of an answer other than 200
  };

  LineConnection(HttpConnection::Options options, Bounds bounds);

  // Connects, sends, and reads the answer's head; of an answer other than 200 all of it. Once.
  // kDeadlineExceeded, kUnavailable, kCancelled and kResourceExhausted as Transport::Call.
  absl::StatusOr<HttpResponse> Open(const HttpRequest& request, SteadyTime deadline);

  // As LineStream.
  absl::StatusOr<std::string> Next(SteadyTime deadline);
  bool IsExhausted() const;
  void Stop();  // from any thread

 private:
  absl::StatusOr<std::string> TakeLine();
  absl::Status Read(SteadyTime deadline);
  void End(absl::Status why);

  const Bounds bounds_;
  HttpConnection connection_;
  std::string text_;  // what has come; from taken_ on it was not handed out
  std::size_t taken_ = 0;
  std::size_t searched_ = 0;  // no line end before this
  bool whole_ = false;        // the server has ended it in good order
  SteadyTime heard_{};        // when something came last
  absl::Status end_;          // once nothing more will come
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_LINE_CONNECTION_H_
