// One request on its way: what the sockets' threads have learnt so far, and the caller that waits
// for it. A caller that gives up leaves; the exchange lives on until the library has let go of it.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_EXCHANGE_H_
#define RINGMASTER_OPERATOR_KUBE_REST_EXCHANGE_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

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
  explicit Exchange(BodyBuffer::Limits limits) : body_(std::make_shared<BodyBuffer>(limits)) {}

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

// The exchanges of one transport, so that it can wait for them. Thread-safe.
class Exchanges {
 public:
  void Add(const std::shared_ptr<Exchange>& exchange);
  // Cancels all and waits until the library is done with them, or `deadline`.
  void CancelAll(SteadyTime deadline);

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Exchange>> exchanges_;  // some are over; guarded by mutex_
  std::size_t sweep_at_ = 64;                       // guarded by mutex_
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_EXCHANGE_H_
