// HTTP to one server: requests with a deadline, over connections that are kept, and answers that
// are read line by line (line_connection.h). Each call is made by the thread that asks for it
// (http_connection.h); no exception leaves.
//
// As many connections are open as calls are under way at once. One that is idle for 30 seconds is
// closed when the next call looks for one. When a kept one turns out to have been closed by the
// server before anything of an answer came, the request is made again on a new one.
//
// Thread-safe. Destroying it is CancelAll; calls must have returned by then.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_TRANSPORT_H_
#define RINGMASTER_OPERATOR_KUBE_REST_TRANSPORT_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"

namespace ringmaster::kube::rest {

struct TransportOptions {
  std::string server;  // as in Config
  std::string tls_server_name;
  std::string ca_pem;
  bool insecure_skip_tls_verify = false;
  std::string client_certificate_pem;
  std::string client_key_pem;
  std::string user_agent;
  std::chrono::milliseconds stream_idle_timeout{100'000};  // for each read of a stream
};

struct HttpRequest {
  std::string method;
  std::string path;  // with the query, escaped
  std::string content_type;
  std::string body;
  std::string bearer_token;
  // Not over a kept connection: then it is never sent twice.
  bool fresh_connection = false;
};

struct HttpResponse {
  int code = 0;
  std::string retry_after;  // the header
  std::string date;         // the header
  bool is_audited = false;  // has the API server's mark (status_errors.h)
  std::string body;
};

// A body that is read line by line as it comes. For one reader; Stop from any thread. Destroying it
// closes its connection.
class LineStream {
 public:
  virtual ~LineStream() = default;

  // The next line. kDeadlineExceeded: none came in time, call again. kCancelled: Stop was called.
  // kOutOfRange: a line is too long. kUnavailable: the stream is over, or nothing was heard for
  // stream_idle_timeout.
  virtual absl::StatusOr<std::string> Next(SteadyTime deadline) = 0;
  // Whether the server ended it in good order and every line was handed out.
  virtual bool IsExhausted() const = 0;
  virtual void Stop() = 0;
};

// Either the lines of an answer 200, or another answer as a whole.
struct StreamResponse {
  HttpResponse response;
  std::unique_ptr<LineStream> lines;  // null unless response.code is 200
};

class Transport {
 public:
  // kInvalidArgument when the address, a certificate or a key cannot be used.
  static absl::StatusOr<std::unique_ptr<Transport>> Create(const TransportOptions& options);
  virtual ~Transport() = default;

  // Any answer of the server is a response. kDeadlineExceeded: none, or half of one, came in time.
  // kUnavailable: no connection, or it broke. kUnauthenticated: the server's certificate is not
  // trusted. kResourceExhausted: the body is longer than `max_body_bytes`.
  virtual absl::StatusOr<HttpResponse> Call(const HttpRequest& request, std::size_t max_body_bytes,
                                            SteadyTime deadline) = 0;

  // As Call until the headers are there. `max_line_bytes` bounds a line.
  virtual absl::StatusOr<StreamResponse> Open(const HttpRequest& request,
                                              std::size_t max_line_bytes, SteadyTime deadline) = 0;

  // Ends what is under way, and whatever is asked for later, with kCancelled.
  virtual void CancelAll() = 0;
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_TRANSPORT_H_
