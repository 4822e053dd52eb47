// Calls to the API server as they must be made: with credentials, within the rate limit and the
// deadline, again after errors that pass. What the calls mean is rest_client.h's.
//
// Thread-safe; blocks.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_CALLER_H_
#define RINGMASTER_OPERATOR_KUBE_REST_CALLER_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube/rest/config.h"
#include "operator/kube/rest/credentials.h"
#include "operator/kube/rest/rate_limiter.h"
#include "operator/kube/rest/rest_client.h"
#include "operator/kube/rest/transport.h"

namespace ringmaster::kube::rest {

// A stream, and the transport that it needs to live.
struct OpenStream {
  std::shared_ptr<Transport> transport;
  std::unique_ptr<LineStream> lines;
};

class Caller {
 public:
  static absl::StatusOr<std::unique_ptr<Caller>> Create(Config config, RestOptions options);
  ~Caller();

  const RestOptions& options() const { return options_; }

  // The body of a 2xx answer, as much as is read of it; every other answer as the error that it
  // means. A request that is not `repeatable` is sent again only where the server says that it has
  // not acted.
  absl::StatusOr<Json> Call(HttpRequest request, bool repeatable, const Reading& reading);
  // As Call, but the body as text.
  absl::StatusOr<std::string> CallText(HttpRequest request);
  absl::StatusOr<OpenStream> Open(HttpRequest request);

  // Ends all calls and streams, now and in future.
  void Stop();

 private:
  // What came of one attempt.
  struct Outcome {
    absl::Status status;
    int http_code = 0;  // 0: there was no answer
    std::optional<std::chrono::seconds> retry_after;
    std::string date;  // as the answer has it
  };
  using Attempt =
      std::function<Outcome(const std::shared_ptr<Transport>&, const HttpRequest&, SteadyTime)>;

  Caller(Config config, RestOptions options);

  absl::Status Repeat(HttpRequest request, bool repeatable, const Attempt& attempt);
  static Outcome OutcomeOf(const absl::StatusOr<HttpResponse>& response,
                           const HttpRequest& request);
  bool MayRepeat(const Outcome& outcome, bool repeatable) const;
  Duration PauseAfter(const Outcome& outcome, int attempts) const;
  // False when there is no time for it, or Stop came.
  bool Pause(SteadyTime until);
  absl::Status AwaitTurn(SteadyTime deadline);
  absl::StatusOr<Credentials> CurrentCredentials();
  absl::StatusOr<std::shared_ptr<Transport>> TransportFor(const Credentials& credentials);

  const Config config_;
  const RestOptions options_;
  RateLimiter limiter_;

  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;                          // guarded by mutex_
  std::shared_ptr<Transport> transport_;           // guarded by mutex_
  Credentials transport_credentials_;              // all but the token; guarded by mutex_
  std::vector<std::weak_ptr<Transport>> retired_;  // streams may still use them; guarded by mutex_
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_CALLER_H_
