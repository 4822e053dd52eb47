// A request whose answer is read line by line as it comes, over a connection of its own: watches
// and logs.
//
// The thread that reads drives the connection (Boost.Beast on a loop of its own): what has arrived
// is decrypted, taken apart and handed out without another thread. Over cpprestsdk each event of a
// watch took several turns of the threads that all calls share; on a busy machine a watch of pods
// fell seconds behind, and the server then ends it.
//
// A reader that lags stops the socket: nothing is read while a whole line waits to be taken.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_LINE_CONNECTION_H_
#define RINGMASTER_OPERATOR_KUBE_REST_LINE_CONNECTION_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "operator/kube/rest/server_address.h"
#include "operator/kube/rest/tls.h"
#include "operator/kube/rest/transport.h"

namespace ringmaster::kube::rest {

// For one reader, which calls everything but Stop. Open and Next block, until their deadlines at
// most.
class LineConnection {
 public:
  struct Options {
    ServerAddress address;
    std::shared_ptr<TlsSetup> tls;  // null for http
    bool insecure_skip_tls_verify = false;
    std::string user_agent;
    std::chrono::milliseconds idle_timeout{};  // for each read of a line
    std::size_t max_line_bytes = 0;
    std::size_t max_body_bytes = 0;  // of an answer other than 200
  };

  explicit LineConnection(Options options);
  ~LineConnection();
  LineConnection(const LineConnection&) = delete;
  LineConnection& operator=(const LineConnection&) = delete;

  // Connects, sends, and reads the answer's head; of an answer other than 200 all of it. Once.
  // kDeadlineExceeded, kUnavailable and kCancelled as Transport::Call.
  absl::StatusOr<HttpResponse> Open(const HttpRequest& request, SteadyTime deadline);

  // As LineStream.
  absl::StatusOr<std::string> Next(SteadyTime deadline);
  bool IsExhausted() const;
  void Stop();  // from any thread

 private:
  class Connection;

  absl::StatusOr<std::string> TakeLine();
  absl::Status Read(SteadyTime deadline);
  void End(absl::Status why);

  const Options options_;
  const std::shared_ptr<Connection> connection_;
  std::string text_;  // what has come; from taken_ on it was not handed out
  std::size_t taken_ = 0;
  std::size_t searched_ = 0;  // no line end before this
  bool whole_ = false;        // the server has ended it in good order
  SteadyTime heard_{};        // when something came last
  absl::Status end_;          // once nothing more will come
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_LINE_CONNECTION_H_
