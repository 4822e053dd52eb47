// The API server's clock, as the Date of its answers tells it. Times that an operator writes into
// objects are compared by the next one, which may run on a node whose clock differs; both go by the
// server's.
//
// A Date is cut to the second, and from some moment between question and answer: it says no more
// than that the server's time lies in an interval. The clock moves only as far as it must to lie in
// it, so that it is the machine's own where the two agree within a second. After the first answer
// it runs by the steady clock, and is slewed at 5 % at most: it neither jumps nor goes back when
// this machine's clock is set, nor where the servers behind one address disagree.
//
// Thread-safe; nothing blocks.
#ifndef RINGMASTER_OPERATOR_KUBE_REST_SERVER_CLOCK_H_
#define RINGMASTER_OPERATOR_KUBE_REST_SERVER_CLOCK_H_

#include <mutex>
#include <optional>
#include <string>

#include "common/clock.h"

namespace ringmaster::kube::rest {

class ServerClock final : public Clock {
 public:
  // `own` must outlive the clock.
  explicit ServerClock(const Clock& own = SystemClock()) : own_(own) {}

  // This machine's time until an answer was observed.
  Time Now() const override;
  SteadyTime SteadyNow() const override { return own_.SteadyNow(); }

  // An answer has just come, with this header ("Mon, 23 Nov 2026 08:49:37 GMT"), to what was asked
  // at `asked` of SteadyNow. A header that is no date says nothing.
  void Observe(const std::string& date, SteadyTime asked);

 private:
  // What it showed when an answer was last observed.
  struct Reading {
    Time time;
    SteadyTime at;
  };
  static Time After(const Reading& reading, SteadyTime now);

  const Clock& own_;
  mutable std::mutex mutex_;
  std::optional<Reading> last_;  // guarded by mutex_
};

}  // namespace ringmaster::kube::rest

#endif  // RINGMASTER_OPERATOR_KUBE_REST_SERVER_CLOCK_H_
