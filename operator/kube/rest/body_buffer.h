// The body of one answer on its way from the sockets' threads to the caller's.
//
// The writer appends what arrives and is told to pause when the reader lags; the reader waits for
// the whole body, or takes one line after another (a watch sends one event a line, a log is lines
// anyway). Both ends may end it: the writer when the answer is over, the reader when it has lost
// interest.
//
// Thread-safe, for one writer and one reader; Stop may be called by anyone.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_BODY_BUFFER_H_
#define RINGMASTER_OPERATOR_KUBE_REST_BODY_BUFFER_H_

#include <condition_variable>
#include <cstddef>
#include <functional>
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
  struct Limits {
    std::size_t max_bytes = 0;       // of a whole body; 0 for a stream of lines, which has no end
    std::size_t max_line_bytes = 0;  // of one line
    std::size_t pause_bytes = 0;     // unread bytes beyond which the writer pauses
  };
  enum class Appended {
    kTaken,
    kPause,    // taken, and nothing more before `resume` is called
    kRefused,  // over a limit, or stopped: the rest is not wanted
  };

  explicit BodyBuffer(Limits limits) : limits_(limits) {}

  // `resume` is kept after kPause alone, and is then called once, from any thread.
  Appended Append(std::string_view bytes, const std::function<void()>& resume);
  // The end, or why there is no more. The first call counts.
  void Finish(absl::Status status);

  // The whole body. kDeadlineExceeded: it is not complete yet. Otherwise what Finish was given, or
  // kResourceExhausted for a body over its limit, or kCancelled.
  absl::StatusOr<std::string> TakeAll(SteadyTime deadline);
  // The next line without its end; kOutOfRange for one over its limit. Lines that came before the
  // end are handed out before it, and so is what stands behind the last line end where the answer
  // was whole.
  absl::StatusOr<std::string> TakeLine(SteadyTime deadline);
  // Whether the answer came whole and every line of it was handed out.
  bool IsExhausted();

  // A reader that waits gets kCancelled at once, and so does every later one.
  void Stop();

 private:
  void EndLocked(absl::Status status, bool at_once);
  std::optional<std::string> LineLocked();
  void ResumeLocked(std::unique_lock<std::mutex>& lock);

  const Limits limits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string bytes_;                // from taken_ on unread; guarded by mutex_
  std::size_t taken_ = 0;            // guarded by mutex_
  std::size_t searched_ = 0;         // no line end before this; guarded by mutex_
  std::optional<absl::Status> end_;  // guarded by mutex_
  bool at_once_ = false;             // the end overtakes what is unread; guarded by mutex_
  std::function<void()> resume_;     // guarded by mutex_
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_BODY_BUFFER_H_
