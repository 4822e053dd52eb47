// One request on its way: what the sockets' threads have learnt so far, and the caller that waits
// for it. A caller that gives up leaves; the exchange lives on until the library has let go of it.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_EXCHANGE_H_
#define RINGMASTER_OPERATOR_KUBE_REST_EXCHANGE_H_

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <pplx/pplxtasks.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "operator/kube/rest/body_buffer.h"

namespace ringmaster::kube::rest {

struct ResponseHead {
  int code = 0;
  std::string retry_after;
};

// Thread-safe.
class Exchange {
 public:
  explicit Exchange(std::size_t max_body_bytes)
      : body_(std::make_shared<BodyBuffer>(max_body_bytes)) {}

  const std::shared_ptr<BodyBuffer>& body() const { return body_; }
  pplx::cancellation_token token() const { return cancel_.get_token(); }

  // The library's side. OnEnd is the last thing that happens.
  void OnHead(ResponseHead head);
  void OnEnd(absl::Status status);

  // The caller's side. kDeadlineExceeded: nothing came in time; otherwise what OnEnd was given.
  absl::StatusOr<ResponseHead> AwaitHead(SteadyTime deadline);
  bool AwaitEnd(SteadyTime deadline);  // not woken before
  // Closes the connection; readers get kCancelled.
  void Cancel();

 private:
  const std::shared_ptr<BodyBuffer> body_;
  pplx::cancellation_token_source cancel_;
  std::mutex mutex_;
  std::condition_variable head_came_;  // or the end
  std::condition_variable ended_;
  std::optional<ResponseHead> head_;  // guarded by mutex_
  std::optional<absl::Status> end_;   // guarded by mutex_
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_EXCHANGE_H_
