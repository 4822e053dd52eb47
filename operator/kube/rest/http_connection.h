// One connection to the API server, on which requests are made one after another. The thread that
// makes one drives it (Boost.Asio on a loop of its own): what is sent is written, and what has
// arrived is decrypted and taken apart, without another thread.
//
// For one user at a time, who calls everything but Stop and IsStopped. Each step blocks, until its
// deadline at most. After any error the connection is of no more use.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_HTTP_CONNECTION_H_
#define RINGMASTER_OPERATOR_KUBE_REST_HTTP_CONNECTION_H_

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

class HttpConnection {
 public:
  struct Options {
    ServerAddress address;
    std::shared_ptr<TlsSetup> tls;  // null for http
    std::string user_agent;
    std::size_t read_bytes = std::size_t{16} << 10;  // at once
  };

  explicit HttpConnection(Options options);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // kDeadlineExceeded, kUnavailable and kCancelled as Transport::Call. Once.
  absl::Status Connect(SteadyTime deadline);

  // Sends the request and reads the head of its answer, whose body is still to be read. After
  // Connect, and after the body of the answer before. Errors as of Connect.
  absl::StatusOr<HttpResponse> Ask(const HttpRequest& request, SteadyTime deadline);
  // Whether anything of the answer has come.
  bool Heard() const;

  // Some of the body, behind `text`; nothing at its end. kDeadlineExceeded leaves the read under
  // way: the next call goes on with it.
  absl::Status ReadSome(std::string& text, SteadyTime deadline);
  // All that is left of it. kResourceExhausted beyond `max_bytes`.
  absl::Status ReadAll(std::string& text, std::size_t max_bytes, SteadyTime deadline);
  bool IsWhole() const;  // the body has been read

  // Whether another request may follow: the answer is whole, and the server closes nothing.
  bool MayFollow() const;
  // Whether the server has been silent since: what it says unasked is that it closes the
  // connection.
  bool IsQuiet() const;

  // Ends what is under way with kCancelled, and everything after it. From any thread.
  void Stop();
  bool IsStopped() const;
  void Close();

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_HTTP_CONNECTION_H_
