// The body of one answer on its way from the sockets' threads to the caller's.
//
// Thread-safe, for one writer and one reader; Stop may be called by anyone.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_BODY_BUFFER_H_
#define RINGMASTER_OPERATOR_KUBE_REST_BODY_BUFFER_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"

namespace ringmaster::kube::rest {

class BodyBuffer {
 public:
  explicit BodyBuffer(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // False: the rest is not wanted, because there is too much of it or the reader has gone.
  bool Append(std::string_view bytes);
  // The end, or why there is no more. The first call counts.
  void Finish(absl::Status status);
  // The reader gets kCancelled, at once.
  void Stop();

  // The whole body. kDeadlineExceeded: it is not complete yet. Otherwise what Finish was given, or
  // kResourceExhausted for a body over its limit, or kCancelled.
  absl::StatusOr<std::string> TakeAll(SteadyTime deadline);

 private:
  void EndLocked(absl::Status status);

  const std::size_t max_bytes_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::string bytes_;                // guarded by mutex_
  std::optional<absl::Status> end_;  // guarded by mutex_
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_BODY_BUFFER_H_
