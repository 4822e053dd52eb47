#include "cli/signals.h"

#include <atomic>
#include <signal.h>

namespace ringmaster::cli {
namespace {

std::atomic<int> stop_signals = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not take a lock");

void Count(int) {
  ++stop_signals;
}

}  // namespace

void CatchStopSignals() {
  struct sigaction action {};
  action.sa_handler = Count;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

int StopSignals() {
  return stop_signals;
}

}  // namespace ringmaster::cli
