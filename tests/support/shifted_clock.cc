// Preloaded into a program (LD_PRELOAD), shifts the time of day that it sees by
// RINGMASTER_TEST_CLOCK_SHIFT seconds: a machine whose clock is wrong. Clocks that measure
// durations stay as they are.
#include <cstdlib>
#include <ctime>
#include <unistd.h>

#include <sys/syscall.h>
#include <sys/time.h>

namespace {

time_t Shift() {
  static const time_t shift = [] {
    const char* text = std::getenv("RINGMASTER_TEST_CLOCK_SHIFT");
    return text == nullptr ? 0 : std::atol(text);
  }();
  return shift;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto result = static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec += Shift();
  return result;
}

extern "C" time_t time(time_t* seconds) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (seconds != nullptr) *seconds = now.tv_sec;
  return now.tv_sec;
}

extern "C" int gettimeofday(timeval* time, void* /*zone*/) noexcept {
  timespec now{};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  *time = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return result;
}
