// HTTP to one server: requests with a deadline, over connections that are kept, and answers that
// are read line by line (line_connection.h). This is where cpprestsdk is; nothing of it is seen
// here, and no exception leaves.
//
// What cpprestsdk does on its own: it keeps connections in a pool, drops those that are idle for 30
// to 60 seconds, and makes a request again on a new connection when a pooled one turns out to have
// been closed by the server. What it does not do, and this does: a deadline for a whole request
// (its time-out is for each read), a bound on the body, IPv6 addresses in URLs, verification of the
// server's certificate for an address, trusting the cluster's authority only, and saying why a
// handshake failed.
//
// Thread-safe. Destroying it is CancelAll.
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
  std::chrono::milliseconds idle_timeout{30'000};          // for each read and write of a call
  std::chrono::milliseconds stream_idle_timeout{100'000};  // for each read of a stream
  int threads = 4;  // of the process's pool; the first transport decides
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

  // Ends what is under way, with kCancelled or kUnavailable, and waits, within a bound, until
  // cpprestsdk is done with it.
  virtual void CancelAll() = 0;
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_TRANSPORT_H_
